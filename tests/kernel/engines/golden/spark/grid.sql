SELECT
  `p` % 2 AS q,
  `p` DIV 2 AS k,
  COUNT(*) AS n
FROM (
  SELECT
    EXPLODE(
      ARRAY(
        (
          (
            (
              (
                (
                  CAST(`node` AS BIGINT) * 20
                ) + (
                  CAST(`g1` AS BIGINT) + 1
                )
              ) * 3
            ) + `c5`
          ) * 2
        ) + 0,
        (
          (
            (
              (
                (
                  CAST(`node` AS BIGINT) * 5
                ) + (
                  CAST(`c0` AS BIGINT) + 1
                )
              ) * 3
            ) + `c5`
          ) * 2
        ) + 1
      )
    ) AS p
  FROM nodes0
  WHERE
    NOT `node` IS NULL
) AS exploded
GROUP BY
  `p`;
