SELECT
  *
FROM (
  SELECT
    `c0`,
    `c1`,
    `g1`,
    `c2`,
    `c3`,
    `c4`,
    `c5`,
    GET(ARRAY(0, 4, 4), `node`) + CASE
      WHEN `node` IN (0)
      THEN CASE WHEN `g1` < 0 THEN 3 WHEN `g1` < 4 THEN 0 WHEN `g1` < 9 THEN 1 ELSE 2 END
      WHEN `node` IN (2)
      THEN `c3`
    END AS node
  FROM (
    SELECT
      *
    FROM (
      SELECT
        `c0`,
        `c1`,
        `g1`,
        `c2`,
        `c3`,
        `c4`,
        `c5`,
        CASE
          WHEN (
            (
              `g1` >= 2
            ) AND (
              `g1` < 15
            )
          ) AND `c5` IN (0, 2)
          THEN CASE WHEN `node` = 3 THEN 0 WHEN `node` = 0 THEN 1 WHEN `node` = 1 THEN 2 END
        END AS node
      FROM (
        SELECT
          *
        FROM (
          SELECT
            `c0`,
            `c1`,
            `g1`,
            `c2`,
            `c3`,
            `c4`,
            `c5`,
            GET(ARRAY(0), `node`) + CASE WHEN `node` IN (0) THEN `c0` END AS node
          FROM (
            SELECT
              *,
              0 AS node
            FROM coded
          ) AS everything
        ) AS inside
        WHERE
          NOT `node` IS NULL
      ) AS above
    ) AS inside
    WHERE
      NOT `node` IS NULL
  ) AS above
) AS inside
WHERE
  NOT `node` IS NULL;
SELECT
  0 AS q,
  CAST(`node` AS BIGINT) AS k,
  COUNT(*) AS n
FROM nodes0
WHERE
  NOT `node` IS NULL
GROUP BY
  CAST(`node` AS BIGINT);
