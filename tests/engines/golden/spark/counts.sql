SELECT
  `p` % 3 AS q,
  `p` DIV 3 AS k,
  COUNT(*) AS n
FROM (
  SELECT
    EXPLODE(
      ARRAY(
        (
          CAST(`node` AS BIGINT) * 3
        ) + 0,
        (
          (
            (
              (
                (
                  CAST(`node` AS BIGINT) * 3
                ) + `c1`
              ) * 3
            ) + `c5`
          ) * 3
        ) + 1,
        (
          (
            (
              (
                (
                  CAST(`node` AS BIGINT) * 33
                ) + `c4`
              ) * 3
            ) + `c5`
          ) * 3
        ) + 2
      )
    ) AS p
  FROM nodes0
  WHERE
    NOT `node` IS NULL
) AS exploded
GROUP BY
  `p`;
