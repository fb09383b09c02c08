SELECT
  0 AS q,
  (
    (
      (
        (
          (
            CAST(`node` AS BIGINT) * 3
          ) + `c1`
        ) * 3
      ) + `c5`
    ) * 33
  ) + `c4` AS k,
  COUNT(*) AS n
FROM nodes0
WHERE
  NOT `node` IS NULL
GROUP BY
  (
    (
      (
        (
          (
            CAST(`node` AS BIGINT) * 3
          ) + `c1`
        ) * 3
      ) + `c5`
    ) * 33
  ) + `c4`;
