SELECT
  0 AS q,
  (
    (
      (
        CAST("node" AS BIGINT) * 20
      ) + (
        CAST("g1" AS BIGINT) + 1
      )
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
        CAST("node" AS BIGINT) * 20
      ) + (
        CAST("g1" AS BIGINT) + 1
      )
    ) * 3
  ) + "c5"
UNION ALL
SELECT
  1 AS q,
  (
    (
      (
        CAST("node" AS BIGINT) * 5
      ) + (
        CAST("c0" AS BIGINT) + 1
      )
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
        CAST("node" AS BIGINT) * 5
      ) + (
        CAST("c0" AS BIGINT) + 1
      )
    ) * 3
  ) + "c5";
