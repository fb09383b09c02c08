SELECT
  CAST("c0" AS SMALLINT) AS c0,
  CAST("g0" AS INT) AS g0
FROM (
  SELECT
    CASE WHEN "g0" < 0 THEN 2 WHEN "g0" < 182 THEN 0 ELSE 1 END AS c0,
    "g0"
  FROM (
    SELECT
      CASE
        WHEN "x0" IS NULL OR ISNAN("x0")
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST("x0", CAST(18262.0 AS DOUBLE)), CAST(18627.0 AS DOUBLE)) - CAST(18262.0 AS DOUBLE)
              ) / CAST(1.0 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
          ) AS BIGINT),
          365
        )
      END AS g0
    FROM (
      SELECT
        CASE
          WHEN STRLEN(CAST("source_rows"."when's" AS TEXT) COLLATE "binary") <= 64
          THEN CASE
            WHEN REGEXP_FULL_MATCH(
              CAST("source_rows"."when's" AS TEXT) COLLATE "binary",
              '[ ]*(([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)([T ][0-9]{2}:[0-9]{2}[ -~]*|[ ]*)'
            )
            THEN CAST(CASE
              WHEN TRY_CAST(SUBSTRING(
                CAST("source_rows"."when's" AS TEXT) COLLATE "binary",
                STRPOS(CAST("source_rows"."when's" AS TEXT) COLLATE "binary", '-') - 4,
                10
              ) AS DATE) BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)
              THEN TRY_CAST(SUBSTRING(
                CAST("source_rows"."when's" AS TEXT) COLLATE "binary",
                STRPOS(CAST("source_rows"."when's" AS TEXT) COLLATE "binary", '-') - 4,
                10
              ) AS DATE) - CAST('1970-01-01' AS DATE)
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
  NOT "c0" IS NULL;

SELECT
  CAST("c0" AS SMALLINT) AS c0,
  CAST("g0" AS INT) AS g0
FROM (
  SELECT
    CASE WHEN "g0" < 0 THEN 2 WHEN "g0" < 182 THEN 0 ELSE 1 END AS c0,
    "g0"
  FROM (
    SELECT
      CASE
        WHEN "x0" IS NULL OR ISNAN("x0")
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST("x0", CAST(18262.0 AS DOUBLE)), CAST(18627.0 AS DOUBLE)) - CAST(18262.0 AS DOUBLE)
              ) / CAST(1.0 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
          ) AS BIGINT),
          365
        )
      END AS g0
    FROM (
      SELECT
        CAST(CASE
          WHEN TRY_CAST("source_rows"."when's" AS DATE) BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)
          THEN TRY_CAST("source_rows"."when's" AS DATE) - CAST('1970-01-01' AS DATE)
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
  NOT "c0" IS NULL;

SELECT
  CAST("c0" AS SMALLINT) AS c0,
  CAST("g0" AS INT) AS g0
FROM (
  SELECT
    CASE WHEN "g0" < 0 THEN 2 WHEN "g0" < 182 THEN 0 ELSE 1 END AS c0,
    "g0"
  FROM (
    SELECT
      CASE
        WHEN "x0" IS NULL OR ISNAN("x0")
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST("x0", CAST(18262.0 AS DOUBLE)), CAST(18627.0 AS DOUBLE)) - CAST(18262.0 AS DOUBLE)
              ) / CAST(1.0 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
          ) AS BIGINT),
          365
        )
      END AS g0
    FROM (
      SELECT
        CAST(CASE
          WHEN TRY_CAST(TRY("source_rows"."when's" AT TIME ZONE 'UTC') AS DATE) BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)
          THEN TRY_CAST(TRY("source_rows"."when's" AT TIME ZONE 'UTC') AS DATE) - CAST('1970-01-01' AS DATE)
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
  NOT "c0" IS NULL;
