WITH numbered AS (
  SELECT
    [c0] AS [c0],
    [c1] AS [c1],
    [c2] AS [c2],
    [c3] AS [c3],
    [c4] AS [c4],
    [g1] AS [g1],
    [g3] AS [g3],
    CASE [node] WHEN 0 THEN 0 END + CASE WHEN [node] IN (0) THEN [c2] END AS node
  FROM (
    SELECT
      *
    FROM (
      SELECT
        [c0] AS [c0],
        [c1] AS [c1],
        [c2] AS [c2],
        [c3] AS [c3],
        [c4] AS [c4],
        [g1] AS [g1],
        [g3] AS [g3],
        CASE
          WHEN (
            [g1] >= 2
          ) AND (
            [g1] < 15
          )
          THEN CASE WHEN [node] = 0 THEN 0 END
        END AS node
      FROM (
        SELECT
          CAST([c0] AS SMALLINT) AS c0,
          CAST([c1] AS SMALLINT) AS c1,
          CAST([g1] AS INTEGER) AS g1,
          CAST([c2] AS SMALLINT) AS c2,
          CAST([c3] AS SMALLINT) AS c3,
          CAST([g3] AS INTEGER) AS g3,
          CAST([c4] AS SMALLINT) AS c4,
          0 AS node
        FROM (
          SELECT
            [c0] AS [c0],
            CASE WHEN [g1] < 0 THEN 2 WHEN [g1] < 6 THEN 0 ELSE 1 END AS c1,
            [g1] AS [g1],
            [c2] AS [c2],
            CASE
              WHEN [g3] < 0
              THEN 10
              WHEN [g3] < 1
              THEN 0
              WHEN [g3] < 2
              THEN 1
              WHEN [g3] < 3
              THEN 2
              WHEN [g3] < 4
              THEN 3
              WHEN [g3] < 5
              THEN 4
              WHEN [g3] < 6
              THEN 5
              WHEN [g3] < 7
              THEN 6
              WHEN [g3] < 8
              THEN 7
              WHEN [g3] < 9
              THEN 8
              ELSE 9
            END AS c3,
            [g3] AS [g3],
            [c4] AS [c4]
          FROM (
            SELECT
              [c0] AS [c0],
              CASE
                WHEN [x1] IS NULL OR 1 = 0
                THEN -1
                ELSE CASE
                  WHEN 18 IS NULL
                  OR CAST(FLOOR(
                    (
                      (
                        CASE
                          WHEN CAST(9.0 AS FLOAT) IS NULL
                          OR CASE
                            WHEN CAST(0.0 AS FLOAT) IS NULL OR [x1] > CAST(0.0 AS FLOAT)
                            THEN [x1]
                            ELSE CAST(0.0 AS FLOAT)
                          END < CAST(9.0 AS FLOAT)
                          THEN CASE
                            WHEN CAST(0.0 AS FLOAT) IS NULL OR [x1] > CAST(0.0 AS FLOAT)
                            THEN [x1]
                            ELSE CAST(0.0 AS FLOAT)
                          END
                          ELSE CAST(9.0 AS FLOAT)
                        END - CAST(0.0 AS FLOAT)
                      ) / CAST(0.5 AS FLOAT)
                    ) + CAST(1e-06 AS FLOAT)
                  ) AS BIGINT) < 18
                  THEN CAST(FLOOR(
                    (
                      (
                        CASE
                          WHEN CAST(9.0 AS FLOAT) IS NULL
                          OR CASE
                            WHEN CAST(0.0 AS FLOAT) IS NULL OR [x1] > CAST(0.0 AS FLOAT)
                            THEN [x1]
                            ELSE CAST(0.0 AS FLOAT)
                          END < CAST(9.0 AS FLOAT)
                          THEN CASE
                            WHEN CAST(0.0 AS FLOAT) IS NULL OR [x1] > CAST(0.0 AS FLOAT)
                            THEN [x1]
                            ELSE CAST(0.0 AS FLOAT)
                          END
                          ELSE CAST(9.0 AS FLOAT)
                        END - CAST(0.0 AS FLOAT)
                      ) / CAST(0.5 AS FLOAT)
                    ) + CAST(1e-06 AS FLOAT)
                  ) AS BIGINT)
                  ELSE 18
                END
              END AS g1,
              [c2] AS [c2],
              CASE
                WHEN [x3] IS NULL OR 1 = 0
                THEN -1
                ELSE CASE
                  WHEN 10 IS NULL
                  OR CAST(FLOOR(
                    (
                      (
                        CASE
                          WHEN CAST(5.0 AS FLOAT) IS NULL
                          OR CASE
                            WHEN CAST(-5.0 AS FLOAT) IS NULL OR [x3] > CAST(-5.0 AS FLOAT)
                            THEN [x3]
                            ELSE CAST(-5.0 AS FLOAT)
                          END < CAST(5.0 AS FLOAT)
                          THEN CASE
                            WHEN CAST(-5.0 AS FLOAT) IS NULL OR [x3] > CAST(-5.0 AS FLOAT)
                            THEN [x3]
                            ELSE CAST(-5.0 AS FLOAT)
                          END
                          ELSE CAST(5.0 AS FLOAT)
                        END - CAST(-5.0 AS FLOAT)
                      ) / CAST(1.0 AS FLOAT)
                    ) + CAST(1e-06 AS FLOAT)
                  ) AS BIGINT) < 10
                  THEN CAST(FLOOR(
                    (
                      (
                        CASE
                          WHEN CAST(5.0 AS FLOAT) IS NULL
                          OR CASE
                            WHEN CAST(-5.0 AS FLOAT) IS NULL OR [x3] > CAST(-5.0 AS FLOAT)
                            THEN [x3]
                            ELSE CAST(-5.0 AS FLOAT)
                          END < CAST(5.0 AS FLOAT)
                          THEN CASE
                            WHEN CAST(-5.0 AS FLOAT) IS NULL OR [x3] > CAST(-5.0 AS FLOAT)
                            THEN [x3]
                            ELSE CAST(-5.0 AS FLOAT)
                          END
                          ELSE CAST(5.0 AS FLOAT)
                        END - CAST(-5.0 AS FLOAT)
                      ) / CAST(1.0 AS FLOAT)
                    ) + CAST(1e-06 AS FLOAT)
                  ) AS BIGINT)
                  ELSE 10
                END
              END AS g3,
              [c4] AS [c4]
            FROM (
              SELECT
                CASE
                  WHEN (
                    CAST(LEFT([source_rows].[sex"]]; DROP TABLE t; --], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
                  ) IS NULL
                  OR (
                    CAST(LEFT([source_rows].[sex"]]; DROP TABLE t; --], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                  ) = N'|'
                  THEN NULL
                  WHEN (
                    CAST(LEFT([source_rows].[sex"]]; DROP TABLE t; --], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                  ) = N'f''); DROP TABLE t; --|'
                  THEN 0
                  WHEN (
                    CAST(LEFT([source_rows].[sex"]]; DROP TABLE t; --], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                  ) = N'm]|'
                  THEN 1
                  WHEN (
                    CAST(LEFT([source_rows].[sex"]]; DROP TABLE t; --], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                  ) = N'trailing |'
                  THEN 2
                  ELSE 3
                END AS c0,
                CAST([source_rows].[order] AS FLOAT) AS x1,
                CASE
                  WHEN (
                    CASE
                      WHEN [source_rows].[select] <> 0
                      THEN 'true'
                      WHEN NOT [source_rows].[select] <> 0
                      THEN 'false'
                    END + N'|'
                  ) = N'true|'
                  THEN 0
                  WHEN (
                    CASE
                      WHEN [source_rows].[select] <> 0
                      THEN 'true'
                      WHEN NOT [source_rows].[select] <> 0
                      THEN 'false'
                    END + N'|'
                  ) = N'false|'
                  THEN 1
                  ELSE NULL
                END AS c2,
                CASE
                  WHEN CAST(DATALENGTH(
                    CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2
                  ) AS BIGINT) / 2 <= 65536
                  THEN COALESCE(
                    CASE
                      WHEN (
                        NOT CASE
                          WHEN LEFT(
                            LTRIM(
                              RTRIM(
                                REPLACE(
                                  CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                  NCHAR(9),
                                  N' '
                                )
                              )
                            ),
                            CHARINDEX(
                              N'E',
                              UPPER(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                )
                              ) + N'E'
                            ) - 1
                          ) LIKE N'[+-]%'
                          THEN SUBSTRING(
                            LEFT(
                              LTRIM(
                                RTRIM(
                                  REPLACE(
                                    CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                    NCHAR(9),
                                    N' '
                                  )
                                )
                              ),
                              CHARINDEX(
                                N'E',
                                UPPER(
                                  LTRIM(
                                    RTRIM(
                                      REPLACE(
                                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                        NCHAR(9),
                                        N' '
                                      )
                                    )
                                  )
                                ) + N'E'
                              ) - 1
                            ),
                            2,
                            2147483647
                          )
                          ELSE LEFT(
                            LTRIM(
                              RTRIM(
                                REPLACE(
                                  CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                  NCHAR(9),
                                  N' '
                                )
                              )
                            ),
                            CHARINDEX(
                              N'E',
                              UPPER(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                )
                              ) + N'E'
                            ) - 1
                          )
                        END LIKE N'%[^0-9.]%'
                        AND (
                          CASE
                            WHEN LEFT(
                              LTRIM(
                                RTRIM(
                                  REPLACE(
                                    CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                    NCHAR(9),
                                    N' '
                                  )
                                )
                              ),
                              CHARINDEX(
                                N'E',
                                UPPER(
                                  LTRIM(
                                    RTRIM(
                                      REPLACE(
                                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                        NCHAR(9),
                                        N' '
                                      )
                                    )
                                  )
                                ) + N'E'
                              ) - 1
                            ) LIKE N'[+-]%'
                            THEN SUBSTRING(
                              LEFT(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                ),
                                CHARINDEX(
                                  N'E',
                                  UPPER(
                                    LTRIM(
                                      RTRIM(
                                        REPLACE(
                                          CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                          NCHAR(9),
                                          N' '
                                        )
                                      )
                                    )
                                  ) + N'E'
                                ) - 1
                              ),
                              2,
                              2147483647
                            )
                            ELSE LEFT(
                              LTRIM(
                                RTRIM(
                                  REPLACE(
                                    CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                    NCHAR(9),
                                    N' '
                                  )
                                )
                              ),
                              CHARINDEX(
                                N'E',
                                UPPER(
                                  LTRIM(
                                    RTRIM(
                                      REPLACE(
                                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                        NCHAR(9),
                                        N' '
                                      )
                                    )
                                  )
                                ) + N'E'
                              ) - 1
                            )
                          END LIKE N'%[0-9]%'
                        )
                      )
                      AND (
                        NOT CASE
                          WHEN LEFT(
                            LTRIM(
                              RTRIM(
                                REPLACE(
                                  CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                  NCHAR(9),
                                  N' '
                                )
                              )
                            ),
                            CHARINDEX(
                              N'E',
                              UPPER(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                )
                              ) + N'E'
                            ) - 1
                          ) LIKE N'[+-]%'
                          THEN SUBSTRING(
                            LEFT(
                              LTRIM(
                                RTRIM(
                                  REPLACE(
                                    CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                    NCHAR(9),
                                    N' '
                                  )
                                )
                              ),
                              CHARINDEX(
                                N'E',
                                UPPER(
                                  LTRIM(
                                    RTRIM(
                                      REPLACE(
                                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                        NCHAR(9),
                                        N' '
                                      )
                                    )
                                  )
                                ) + N'E'
                              ) - 1
                            ),
                            2,
                            2147483647
                          )
                          ELSE LEFT(
                            LTRIM(
                              RTRIM(
                                REPLACE(
                                  CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                  NCHAR(9),
                                  N' '
                                )
                              )
                            ),
                            CHARINDEX(
                              N'E',
                              UPPER(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                )
                              ) + N'E'
                            ) - 1
                          )
                        END LIKE N'%.%.%'
                        AND (
                          CHARINDEX(
                            N'E',
                            UPPER(
                              LTRIM(
                                RTRIM(
                                  REPLACE(
                                    CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                    NCHAR(9),
                                    N' '
                                  )
                                )
                              )
                            ) + N'E'
                          ) = LEN(
                            UPPER(
                              LTRIM(
                                RTRIM(
                                  REPLACE(
                                    CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                    NCHAR(9),
                                    N' '
                                  )
                                )
                              )
                            ) + N'E'
                          )
                          OR (
                            NOT CASE
                              WHEN SUBSTRING(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                ),
                                CHARINDEX(
                                  N'E',
                                  UPPER(
                                    LTRIM(
                                      RTRIM(
                                        REPLACE(
                                          CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                          NCHAR(9),
                                          N' '
                                        )
                                      )
                                    )
                                  ) + N'E'
                                ) + 1,
                                2147483647
                              ) LIKE N'[+-]%'
                              THEN SUBSTRING(
                                SUBSTRING(
                                  LTRIM(
                                    RTRIM(
                                      REPLACE(
                                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                        NCHAR(9),
                                        N' '
                                      )
                                    )
                                  ),
                                  CHARINDEX(
                                    N'E',
                                    UPPER(
                                      LTRIM(
                                        RTRIM(
                                          REPLACE(
                                            CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                            NCHAR(9),
                                            N' '
                                          )
                                        )
                                      )
                                    ) + N'E'
                                  ) + 1,
                                  2147483647
                                ),
                                2,
                                2147483647
                              )
                              ELSE SUBSTRING(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                ),
                                CHARINDEX(
                                  N'E',
                                  UPPER(
                                    LTRIM(
                                      RTRIM(
                                        REPLACE(
                                          CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                          NCHAR(9),
                                          N' '
                                        )
                                      )
                                    )
                                  ) + N'E'
                                ) + 1,
                                2147483647
                              )
                            END LIKE N'%[^0-9]%'
                            AND (
                              SUBSTRING(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                ),
                                CHARINDEX(
                                  N'E',
                                  UPPER(
                                    LTRIM(
                                      RTRIM(
                                        REPLACE(
                                          CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                          NCHAR(9),
                                          N' '
                                        )
                                      )
                                    )
                                  ) + N'E'
                                ) + 1,
                                2147483647
                              ) LIKE N'%[0-9]%'
                            )
                          )
                        )
                      )
                      THEN COALESCE(
                        TRY_CAST(LTRIM(
                          RTRIM(
                            REPLACE(
                              CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                              NCHAR(9),
                              N' '
                            )
                          )
                        ) AS FLOAT),
                        CASE
                          WHEN SUBSTRING(
                            LTRIM(
                              RTRIM(
                                REPLACE(
                                  CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                  NCHAR(9),
                                  N' '
                                )
                              )
                            ),
                            CHARINDEX(
                              N'E',
                              UPPER(
                                LTRIM(
                                  RTRIM(
                                    REPLACE(
                                      CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                      NCHAR(9),
                                      N' '
                                    )
                                  )
                                )
                              ) + N'E'
                            ) + 1,
                            2147483647
                          ) LIKE N'-%'
                          THEN CAST(0 AS FLOAT)
                          WHEN LTRIM(
                            RTRIM(
                              REPLACE(
                                CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2,
                                NCHAR(9),
                                N' '
                              )
                            )
                          ) LIKE N'-%'
                          THEN CAST(-1.7e+308 AS FLOAT)
                          ELSE CAST(1.7e+308 AS FLOAT)
                        END
                      )
                    END,
                    CASE
                      WHEN (
                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                      ) = N'true|'
                      THEN CAST(1 AS FLOAT)
                      WHEN (
                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                      ) = N'True|'
                      THEN CAST(1 AS FLOAT)
                      WHEN (
                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                      ) = N'TRUE|'
                      THEN CAST(1 AS FLOAT)
                      WHEN (
                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                      ) = N'false|'
                      THEN CAST(0 AS FLOAT)
                      WHEN (
                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                      ) = N'False|'
                      THEN CAST(0 AS FLOAT)
                      WHEN (
                        CAST(LEFT([source_rows].[read], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                      ) = N'FALSE|'
                      THEN CAST(0 AS FLOAT)
                    END
                  )
                END AS x3,
                CASE
                  WHEN (
                    CAST(LEFT([source_rows].[y], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                  ) = N'no|'
                  THEN 0
                  WHEN (
                    CAST(LEFT([source_rows].[y], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                  ) = N'yes|'
                  THEN 1
                  WHEN (
                    CAST(LEFT([source_rows].[y], 1048577) AS NVARCHAR(MAX)) COLLATE Latin1_General_100_BIN2 + N'|'
                  ) = N'maybe|'
                  THEN 2
                  ELSE NULL
                END AS c4
              FROM (
                SELECT
                  *
                FROM [dbo].[it's [t]]]
              ) AS source_rows
            ) AS numbers
          ) AS grids
        ) AS fits
        WHERE
          (
            NOT [c0] IS NULL AND NOT [c1] IS NULL
          )
          AND (
            NOT [c2] IS NULL AND (
              NOT [c3] IS NULL AND NOT [c4] IS NULL
            )
          )
      ) AS above
    ) AS inside
    WHERE
      NOT [node] IS NULL
  ) AS above
)
SELECT
  0 AS q,
  (
    (
      (
        (
          (
            CAST([node] AS BIGINT) * 3
          ) + [c1]
        ) * 3
      ) + [c4]
    ) * 11
  ) + [c3] AS k,
  COUNT_BIG(*) AS n
FROM numbered
WHERE
  NOT [node] IS NULL
GROUP BY
  (
    (
      (
        (
          (
            CAST([node] AS BIGINT) * 3
          ) + [c1]
        ) * 3
      ) + [c4]
    ) * 11
  ) + [c3];
