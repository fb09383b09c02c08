SELECT
  0 AS q,
  CAST(`node` AS BIGINT) AS k,
  COUNT(*) AS n
FROM (
  SELECT
    `node`,
    `c5`,
    CAST(10 + GET(
      ARRAY(0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2),
      (
        (
          (
            CAST(`c0` AS BIGINT) * 2
          ) + CAST(`c3` AS BIGINT)
        ) * 4
      ) + CAST(`c2` AS BIGINT)
    ) AS BIGINT) AS z0,
    CAST(-20 + GET(
      ARRAY(1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3),
      (
        (
          (
            CAST(`c0` AS BIGINT) * 2
          ) + CAST(`c3` AS BIGINT)
        ) * 4
      ) + CAST(`c2` AS BIGINT)
    ) AS BIGINT) AS z1,
    CAST(0 + GET(
      ARRAY(2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4, 0, 3, 6, 2, 5, 1, 4),
      (
        (
          (
            CAST(`c0` AS BIGINT) * 2
          ) + CAST(`c3` AS BIGINT)
        ) * 4
      ) + CAST(`c2` AS BIGINT)
    ) AS BIGINT) AS z2
  FROM nodes0
  WHERE
    NOT `node` IS NULL
) AS layer
WHERE
  (
    (
      `c5` = 0
    ) AND (
      (
        `z0` >= `z1`
      ) AND (
        `z0` >= `z2`
      )
    )
  )
  OR (
    (
      (
        `c5` = 1
      ) AND (
        (
          `z1` > `z0`
        ) AND (
          `z1` >= `z2`
        )
      )
    )
    OR (
      (
        `c5` = 2
      ) AND (
        (
          `z2` > `z0`
        ) AND (
          `z2` > `z1`
        )
      )
    )
  )
GROUP BY
  CAST(`node` AS BIGINT);
