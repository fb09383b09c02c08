SELECT
  CAST(`c0` AS SMALLINT) AS c0,
  CAST(`g0` AS INT) AS g0
FROM (
  SELECT
    CASE WHEN `g0` < 0 THEN 2 WHEN `g0` < 182 THEN 0 ELSE 1 END AS c0,
    `g0`
  FROM (
    SELECT
      CASE
        WHEN `x0` IS NULL OR ISNAN(`x0`)
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST(`x0`, CAST(18262.0 AS DOUBLE)), CAST(18627.0 AS DOUBLE)) - CAST(18262.0 AS DOUBLE)
              ) / CAST(1.0 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
          ) AS BIGINT),
          365
        )
      END AS g0
    FROM (
      SELECT
        CASE
          WHEN OCTET_LENGTH(CAST(`source_rows`.`when's` AS STRING)) <= 64
          THEN CASE
            WHEN CAST(`source_rows`.`when's` AS STRING) RLIKE '\\A[ ]*(([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)([T ][0-9]{2}:[0-9]{2}[ -~]*|[ ]*)\\z'
            THEN CAST(CASE
              WHEN DATEDIFF(
                DAY,
                CAST('1970-01-01' AS DATE),
                TRY_CAST(SUBSTRING(
                  CAST(`source_rows`.`when's` AS STRING),
                  LOCATE('-', CAST(`source_rows`.`when's` AS STRING)) - 4,
                  10
                ) AS DATE)
              ) BETWEEN -719162 AND 2932896
              THEN DATEDIFF(
                DAY,
                CAST('1970-01-01' AS DATE),
                TRY_CAST(SUBSTRING(
                  CAST(`source_rows`.`when's` AS STRING),
                  LOCATE('-', CAST(`source_rows`.`when's` AS STRING)) - 4,
                  10
                ) AS DATE)
              )
            END AS DOUBLE)
          END
        END AS x0
      FROM (
        SELECT
          *
        FROM t
      ) AS source_rows
    ) AS numbers
  ) AS grids
) AS fits
WHERE
  NOT `c0` IS NULL;

SELECT
  CAST(`c0` AS SMALLINT) AS c0,
  CAST(`g0` AS INT) AS g0
FROM (
  SELECT
    CASE WHEN `g0` < 0 THEN 2 WHEN `g0` < 182 THEN 0 ELSE 1 END AS c0,
    `g0`
  FROM (
    SELECT
      CASE
        WHEN `x0` IS NULL OR ISNAN(`x0`)
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST(`x0`, CAST(18262.0 AS DOUBLE)), CAST(18627.0 AS DOUBLE)) - CAST(18262.0 AS DOUBLE)
              ) / CAST(1.0 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
          ) AS BIGINT),
          365
        )
      END AS g0
    FROM (
      SELECT
        CAST(CASE
          WHEN DATEDIFF(DAY, CAST('1970-01-01' AS DATE), CAST(`source_rows`.`when's` AS DATE)) BETWEEN -719162 AND 2932896
          THEN DATEDIFF(DAY, CAST('1970-01-01' AS DATE), CAST(`source_rows`.`when's` AS DATE))
        END AS DOUBLE) AS x0
      FROM (
        SELECT
          *
        FROM t
      ) AS source_rows
    ) AS numbers
  ) AS grids
) AS fits
WHERE
  NOT `c0` IS NULL;

SELECT
  CAST(`c0` AS SMALLINT) AS c0,
  CAST(`g0` AS INT) AS g0
FROM (
  SELECT
    CASE WHEN `g0` < 0 THEN 2 WHEN `g0` < 182 THEN 0 ELSE 1 END AS c0,
    `g0`
  FROM (
    SELECT
      CASE
        WHEN `x0` IS NULL OR ISNAN(`x0`)
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST(`x0`, CAST(18262.0 AS DOUBLE)), CAST(18627.0 AS DOUBLE)) - CAST(18262.0 AS DOUBLE)
              ) / CAST(1.0 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
          ) AS BIGINT),
          365
        )
      END AS g0
    FROM (
      SELECT
        CAST(CASE
          WHEN (
            UNIX_MICROS(`source_rows`.`when's`) + 62135683200000000
          ) DIV 86400000000 - 719163 BETWEEN -719162 AND 2932896
          THEN (
            UNIX_MICROS(`source_rows`.`when's`) + 62135683200000000
          ) DIV 86400000000 - 719163
        END AS DOUBLE) AS x0
      FROM (
        SELECT
          *
        FROM t
      ) AS source_rows
    ) AS numbers
  ) AS grids
) AS fits
WHERE
  NOT `c0` IS NULL;
