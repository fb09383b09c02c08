# The server: docker build -t privet . && docker run -v /srv/privet:/data -p 8443:8443 privet
# /data holds privet.toml, the tables and the ledger: docs/how-to/server.md.
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /privet/
COPY src /privet/src
RUN pip install --no-cache-dir '/privet[server,postgres]' && useradd --system privet && install -d -o privet /data
USER privet
VOLUME /data
EXPOSE 8443
CMD ["privet", "serve", "/data/privet.toml"]
