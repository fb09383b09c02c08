"""The promise across a trust boundary: a server that holds the rows, and a client whose tables have the same methods.

`privet serve` opens tables and answers analysts over HTTP; `privet.connect` is their side of it. What crosses the
wire is JSON: questions as `privet.question_json` reads them, steps that say which rows they are about, and plain noisy
values back. No pickle, code, SQL or callable does.
"""
