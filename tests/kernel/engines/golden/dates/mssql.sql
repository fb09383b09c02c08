SELECT
  CAST([c0] AS SMALLINT) AS c0,
  CAST([g0] AS INTEGER) AS g0
FROM (
  SELECT
    CASE WHEN [g0] < 0 THEN 2 WHEN [g0] < 182 THEN 0 ELSE 1 END AS c0,
    [g0] AS [g0]
  FROM (
    SELECT
      CASE
        WHEN [x0] IS NULL OR 1 = 0
        THEN -1
        ELSE CASE
          WHEN 365 IS NULL
          OR CAST(FLOOR(
            (
              (
                CASE
                  WHEN CAST(18627.0 AS FLOAT) IS NULL
                  OR CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END < CAST(18627.0 AS FLOAT)
                  THEN CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END
                  ELSE CAST(18627.0 AS FLOAT)
                END - CAST(18262.0 AS FLOAT)
              ) / CAST(1.0 AS FLOAT)
            ) + CAST(1e-06 AS FLOAT)
          ) AS BIGINT) < 365
          THEN CAST(FLOOR(
            (
              (
                CASE
                  WHEN CAST(18627.0 AS FLOAT) IS NULL
                  OR CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END < CAST(18627.0 AS FLOAT)
                  THEN CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END
                  ELSE CAST(18627.0 AS FLOAT)
                END - CAST(18262.0 AS FLOAT)
              ) / CAST(1.0 AS FLOAT)
            ) + CAST(1e-06 AS FLOAT)
          ) AS BIGINT)
          ELSE 365
        END
      END AS g0
    FROM (
      SELECT
        CASE
          WHEN CAST(DATALENGTH(
            CAST(LEFT([source_rows].[when's], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
          ) AS BIGINT) / 2 <= 64
          THEN CASE
            WHEN (
              LTRIM(
                RTRIM(
                  CAST(LEFT([source_rows].[when's], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
                )
              ) LIKE N'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'
              OR LTRIM(
                RTRIM(
                  CAST(LEFT([source_rows].[when's], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
                )
              ) LIKE N'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]%'
            )
            AND (
              NOT LTRIM(
                RTRIM(
                  CAST(LEFT([source_rows].[when's], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
                )
              ) LIKE N'%[^ -~]%'
              AND NOT LTRIM(
                RTRIM(
                  CAST(LEFT([source_rows].[when's], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
                )
              ) LIKE N'0000%'
            )
            THEN CAST(DATEDIFF(
              DAY,
              CAST(CAST('1970-01-01' AS DATE) AS DATETIME2),
              CAST(TRY_CAST(SUBSTRING(
                CAST(LEFT([source_rows].[when's], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                CHARINDEX(
                  '-',
                  CAST(LEFT([source_rows].[when's], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
                ) - 4,
                10
              ) AS DATE) AS DATETIME2)
            ) AS FLOAT)
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
  NOT [c0] IS NULL;

SELECT
  CAST([c0] AS SMALLINT) AS c0,
  CAST([g0] AS INTEGER) AS g0
FROM (
  SELECT
    CASE WHEN [g0] < 0 THEN 2 WHEN [g0] < 182 THEN 0 ELSE 1 END AS c0,
    [g0] AS [g0]
  FROM (
    SELECT
      CASE
        WHEN [x0] IS NULL OR 1 = 0
        THEN -1
        ELSE CASE
          WHEN 365 IS NULL
          OR CAST(FLOOR(
            (
              (
                CASE
                  WHEN CAST(18627.0 AS FLOAT) IS NULL
                  OR CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END < CAST(18627.0 AS FLOAT)
                  THEN CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END
                  ELSE CAST(18627.0 AS FLOAT)
                END - CAST(18262.0 AS FLOAT)
              ) / CAST(1.0 AS FLOAT)
            ) + CAST(1e-06 AS FLOAT)
          ) AS BIGINT) < 365
          THEN CAST(FLOOR(
            (
              (
                CASE
                  WHEN CAST(18627.0 AS FLOAT) IS NULL
                  OR CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END < CAST(18627.0 AS FLOAT)
                  THEN CASE
                    WHEN CAST(18262.0 AS FLOAT) IS NULL OR [x0] > CAST(18262.0 AS FLOAT)
                    THEN [x0]
                    ELSE CAST(18262.0 AS FLOAT)
                  END
                  ELSE CAST(18627.0 AS FLOAT)
                END - CAST(18262.0 AS FLOAT)
              ) / CAST(1.0 AS FLOAT)
            ) + CAST(1e-06 AS FLOAT)
          ) AS BIGINT)
          ELSE 365
        END
      END AS g0
    FROM (
      SELECT
        CAST(DATEDIFF(
          DAY,
          CAST(CAST('1970-01-01' AS DATE) AS DATETIME2),
          CAST(CAST([source_rows].[when's] AS DATE) AS DATETIME2)
        ) AS FLOAT) AS x0
      FROM (
        SELECT
          *
        FROM t
      ) AS source_rows
    ) AS numbers
  ) AS grids
) AS fits
WHERE
  NOT [c0] IS NULL;
