SELECT
  0 AS q,
  CAST("node" AS BIGINT) AS k,
  COUNT(*) AS n,
  CAST(LEAST(SUM(CAST("g1" AS BIGINT)), 9223372036854775807) AS BIGINT) AS s
FROM (
  SELECT
    *,
    0 AS node
  FROM coded
) AS everything
WHERE
  NOT "node" IS NULL AND "g1" >= 0
GROUP BY
  CAST("node" AS BIGINT);
