SELECT
  0 AS q,
  CAST("node" AS BIGINT) AS k,
  COUNT(*) AS n
FROM coded
POSITIONAL JOIN nodes2
WHERE
  NOT "node" IS NULL
GROUP BY
  CAST("node" AS BIGINT)
UNION ALL
SELECT
  1 AS q,
  (
    (
      (
        CAST("node" AS BIGINT) * 3
      ) + "c1"
    ) * 3
  ) + "c5" AS k,
  COUNT(*) AS n
FROM coded
POSITIONAL JOIN nodes2
WHERE
  NOT "node" IS NULL
GROUP BY
  (
    (
      (
        CAST("node" AS BIGINT) * 3
      ) + "c1"
    ) * 3
  ) + "c5"
UNION ALL
SELECT
  2 AS q,
  (
    (
      (
        CAST("node" AS BIGINT) * 33
      ) + "c4"
    ) * 3
  ) + "c5" AS k,
  COUNT(*) AS n
FROM coded
POSITIONAL JOIN nodes2
WHERE
  NOT "node" IS NULL
GROUP BY
  (
    (
      (
        CAST("node" AS BIGINT) * 33
      ) + "c4"
    ) * 3
  ) + "c5";
