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
), owned AS (
  SELECT
    [node] AS [node],
    [c1] AS [c1],
    [c2] AS [c2],
    [c4] AS [c4],
    [e0] AS [e0],
    [e1] AS [e1],
    [e2] AS [e2],
    [w] AS [w],
    CASE
      WHEN CASE WHEN [c4] = 0 THEN 1024 WHEN [c4] = 1 THEN 512 WHEN [c4] = 2 THEN 100 ELSE 0 END IS NULL
      OR CAST((
        1024 * [w]
      ) AS BIGINT) / [t] < CASE WHEN [c4] = 0 THEN 1024 WHEN [c4] = 1 THEN 512 WHEN [c4] = 2 THEN 100 ELSE 0 END
      THEN CAST((
        1024 * [w]
      ) AS BIGINT) / [t]
      ELSE CASE WHEN [c4] = 0 THEN 1024 WHEN [c4] = 1 THEN 512 WHEN [c4] = 2 THEN 100 ELSE 0 END
    END AS o
  FROM (
    SELECT
      [node] AS [node],
      [c1] AS [c1],
      [c2] AS [c2],
      [c4] AS [c4],
      [e0] AS [e0],
      [e1] AS [e1],
      [e2] AS [e2],
      [t] AS [t],
      [t] - [e] AS w
    FROM (
      SELECT
        [node] AS [node],
        [c1] AS [c1],
        [c2] AS [c2],
        [c4] AS [c4],
        [e0] AS [e0],
        [e1] AS [e1],
        [e2] AS [e2],
        [e0] + (
          [e1] + [e2]
        ) AS t,
        CASE WHEN [c4] = 0 THEN [e0] WHEN [c4] = 1 THEN [e1] WHEN [c4] = 2 THEN [e2] ELSE 0 END AS e
      FROM (
        SELECT
          [node] AS [node],
          [c1] AS [c1],
          [c2] AS [c2],
          [c4] AS [c4],
          CASE
            WHEN [d0] < 16384
            THEN CAST((
              (
                CAST((
                  (
                    CAST((
                      (
                        CAST((
                          (
                            CAST((
                              (
                                CAST((
                                  (
                                    CAST((
                                      (
                                        CAST((
                                          (
                                            CAST((
                                              (
                                                CAST((
                                                  (
                                                    CAST((
                                                      (
                                                        CAST((
                                                          (
                                                            CAST((
                                                              (
                                                                CAST((
                                                                  CAST(1048576 AS BIGINT) * CASE WHEN (
                                                                    [d0] & 1
                                                                  ) = 1 THEN 1047552 ELSE 1048576 END
                                                                ) AS BIGINT) / 1048576
                                                              ) * CASE WHEN (
                                                                [d0] & 2
                                                              ) = 2 THEN 1046530 ELSE 1048576 END
                                                            ) AS BIGINT) / 1048576
                                                          ) * CASE WHEN (
                                                            [d0] & 4
                                                          ) = 4 THEN 1044488 ELSE 1048576 END
                                                        ) AS BIGINT) / 1048576
                                                      ) * CASE WHEN (
                                                        [d0] & 8
                                                      ) = 8 THEN 1040416 ELSE 1048576 END
                                                    ) AS BIGINT) / 1048576
                                                  ) * CASE WHEN (
                                                    [d0] & 16
                                                  ) = 16 THEN 1032319 ELSE 1048576 END
                                                ) AS BIGINT) / 1048576
                                              ) * CASE WHEN (
                                                [d0] & 32
                                              ) = 32 THEN 1016315 ELSE 1048576 END
                                            ) AS BIGINT) / 1048576
                                          ) * CASE WHEN (
                                            [d0] & 64
                                          ) = 64 THEN 985046 ELSE 1048576 END
                                        ) AS BIGINT) / 1048576
                                      ) * CASE WHEN (
                                        [d0] & 128
                                      ) = 128 THEN 925365 ELSE 1048576 END
                                    ) AS BIGINT) / 1048576
                                  ) * CASE WHEN (
                                    [d0] & 256
                                  ) = 256 THEN 816632 ELSE 1048576 END
                                ) AS BIGINT) / 1048576
                              ) * CASE WHEN (
                                [d0] & 512
                              ) = 512 THEN 635993 ELSE 1048576 END
                            ) AS BIGINT) / 1048576
                          ) * CASE WHEN (
                            [d0] & 1024
                          ) = 1024 THEN 385750 ELSE 1048576 END
                        ) AS BIGINT) / 1048576
                      ) * CASE WHEN (
                        [d0] & 2048
                      ) = 2048 THEN 141909 ELSE 1048576 END
                    ) AS BIGINT) / 1048576
                  ) * CASE WHEN (
                    [d0] & 4096
                  ) = 4096 THEN 19205 ELSE 1048576 END
                ) AS BIGINT) / 1048576
              ) * CASE WHEN (
                [d0] & 8192
              ) = 8192 THEN 352 ELSE 1048576 END
            ) AS BIGINT) / 1048576
            ELSE 0
          END AS e0,
          CASE
            WHEN [d1] < 16384
            THEN CAST((
              (
                CAST((
                  (
                    CAST((
                      (
                        CAST((
                          (
                            CAST((
                              (
                                CAST((
                                  (
                                    CAST((
                                      (
                                        CAST((
                                          (
                                            CAST((
                                              (
                                                CAST((
                                                  (
                                                    CAST((
                                                      (
                                                        CAST((
                                                          (
                                                            CAST((
                                                              (
                                                                CAST((
                                                                  CAST(1048576 AS BIGINT) * CASE WHEN (
                                                                    [d1] & 1
                                                                  ) = 1 THEN 1047552 ELSE 1048576 END
                                                                ) AS BIGINT) / 1048576
                                                              ) * CASE WHEN (
                                                                [d1] & 2
                                                              ) = 2 THEN 1046530 ELSE 1048576 END
                                                            ) AS BIGINT) / 1048576
                                                          ) * CASE WHEN (
                                                            [d1] & 4
                                                          ) = 4 THEN 1044488 ELSE 1048576 END
                                                        ) AS BIGINT) / 1048576
                                                      ) * CASE WHEN (
                                                        [d1] & 8
                                                      ) = 8 THEN 1040416 ELSE 1048576 END
                                                    ) AS BIGINT) / 1048576
                                                  ) * CASE WHEN (
                                                    [d1] & 16
                                                  ) = 16 THEN 1032319 ELSE 1048576 END
                                                ) AS BIGINT) / 1048576
                                              ) * CASE WHEN (
                                                [d1] & 32
                                              ) = 32 THEN 1016315 ELSE 1048576 END
                                            ) AS BIGINT) / 1048576
                                          ) * CASE WHEN (
                                            [d1] & 64
                                          ) = 64 THEN 985046 ELSE 1048576 END
                                        ) AS BIGINT) / 1048576
                                      ) * CASE WHEN (
                                        [d1] & 128
                                      ) = 128 THEN 925365 ELSE 1048576 END
                                    ) AS BIGINT) / 1048576
                                  ) * CASE WHEN (
                                    [d1] & 256
                                  ) = 256 THEN 816632 ELSE 1048576 END
                                ) AS BIGINT) / 1048576
                              ) * CASE WHEN (
                                [d1] & 512
                              ) = 512 THEN 635993 ELSE 1048576 END
                            ) AS BIGINT) / 1048576
                          ) * CASE WHEN (
                            [d1] & 1024
                          ) = 1024 THEN 385750 ELSE 1048576 END
                        ) AS BIGINT) / 1048576
                      ) * CASE WHEN (
                        [d1] & 2048
                      ) = 2048 THEN 141909 ELSE 1048576 END
                    ) AS BIGINT) / 1048576
                  ) * CASE WHEN (
                    [d1] & 4096
                  ) = 4096 THEN 19205 ELSE 1048576 END
                ) AS BIGINT) / 1048576
              ) * CASE WHEN (
                [d1] & 8192
              ) = 8192 THEN 352 ELSE 1048576 END
            ) AS BIGINT) / 1048576
            ELSE 0
          END AS e1,
          CASE
            WHEN [d2] < 16384
            THEN CAST((
              (
                CAST((
                  (
                    CAST((
                      (
                        CAST((
                          (
                            CAST((
                              (
                                CAST((
                                  (
                                    CAST((
                                      (
                                        CAST((
                                          (
                                            CAST((
                                              (
                                                CAST((
                                                  (
                                                    CAST((
                                                      (
                                                        CAST((
                                                          (
                                                            CAST((
                                                              (
                                                                CAST((
                                                                  CAST(1048576 AS BIGINT) * CASE WHEN (
                                                                    [d2] & 1
                                                                  ) = 1 THEN 1047552 ELSE 1048576 END
                                                                ) AS BIGINT) / 1048576
                                                              ) * CASE WHEN (
                                                                [d2] & 2
                                                              ) = 2 THEN 1046530 ELSE 1048576 END
                                                            ) AS BIGINT) / 1048576
                                                          ) * CASE WHEN (
                                                            [d2] & 4
                                                          ) = 4 THEN 1044488 ELSE 1048576 END
                                                        ) AS BIGINT) / 1048576
                                                      ) * CASE WHEN (
                                                        [d2] & 8
                                                      ) = 8 THEN 1040416 ELSE 1048576 END
                                                    ) AS BIGINT) / 1048576
                                                  ) * CASE WHEN (
                                                    [d2] & 16
                                                  ) = 16 THEN 1032319 ELSE 1048576 END
                                                ) AS BIGINT) / 1048576
                                              ) * CASE WHEN (
                                                [d2] & 32
                                              ) = 32 THEN 1016315 ELSE 1048576 END
                                            ) AS BIGINT) / 1048576
                                          ) * CASE WHEN (
                                            [d2] & 64
                                          ) = 64 THEN 985046 ELSE 1048576 END
                                        ) AS BIGINT) / 1048576
                                      ) * CASE WHEN (
                                        [d2] & 128
                                      ) = 128 THEN 925365 ELSE 1048576 END
                                    ) AS BIGINT) / 1048576
                                  ) * CASE WHEN (
                                    [d2] & 256
                                  ) = 256 THEN 816632 ELSE 1048576 END
                                ) AS BIGINT) / 1048576
                              ) * CASE WHEN (
                                [d2] & 512
                              ) = 512 THEN 635993 ELSE 1048576 END
                            ) AS BIGINT) / 1048576
                          ) * CASE WHEN (
                            [d2] & 1024
                          ) = 1024 THEN 385750 ELSE 1048576 END
                        ) AS BIGINT) / 1048576
                      ) * CASE WHEN (
                        [d2] & 2048
                      ) = 2048 THEN 141909 ELSE 1048576 END
                    ) AS BIGINT) / 1048576
                  ) * CASE WHEN (
                    [d2] & 4096
                  ) = 4096 THEN 19205 ELSE 1048576 END
                ) AS BIGINT) / 1048576
              ) * CASE WHEN (
                [d2] & 8192
              ) = 8192 THEN 352 ELSE 1048576 END
            ) AS BIGINT) / 1048576
            ELSE 0
          END AS e2
        FROM (
          SELECT
            [node] AS [node],
            [c1] AS [c1],
            [c2] AS [c2],
            [c4] AS [c4],
            CASE
              WHEN [z2] IS NULL
              OR CASE WHEN [z1] IS NULL OR [z0] > [z1] THEN [z0] ELSE [z1] END > [z2]
              THEN CASE WHEN [z1] IS NULL OR [z0] > [z1] THEN [z0] ELSE [z1] END
              ELSE [z2]
            END - [z0] AS d0,
            CASE
              WHEN [z2] IS NULL
              OR CASE WHEN [z1] IS NULL OR [z0] > [z1] THEN [z0] ELSE [z1] END > [z2]
              THEN CASE WHEN [z1] IS NULL OR [z0] > [z1] THEN [z0] ELSE [z1] END
              ELSE [z2]
            END - [z1] AS d1,
            CASE
              WHEN [z2] IS NULL
              OR CASE WHEN [z1] IS NULL OR [z0] > [z1] THEN [z0] ELSE [z1] END > [z2]
              THEN CASE WHEN [z1] IS NULL OR [z0] > [z1] THEN [z0] ELSE [z1] END
              ELSE [z2]
            END - [z2] AS d2
          FROM (
            SELECT
              [node] AS [node],
              [c1] AS [c1],
              [c2] AS [c2],
              [c4] AS [c4],
              CAST(10 + CASE (
                  CAST([c2] AS BIGINT) * 3
                ) + CAST([c4] AS BIGINT)
                WHEN 0
                THEN 0
                WHEN 1
                THEN 3
                WHEN 2
                THEN 1
                WHEN 3
                THEN 4
                WHEN 4
                THEN 2
                WHEN 5
                THEN 0
              END AS BIGINT) AS z0,
              CAST(-20 + CASE (
                  CAST([c2] AS BIGINT) * 3
                ) + CAST([c4] AS BIGINT)
                WHEN 0
                THEN 1
                WHEN 1
                THEN 4
                WHEN 2
                THEN 2
                WHEN 3
                THEN 0
                WHEN 4
                THEN 3
                WHEN 5
                THEN 1
              END AS BIGINT) AS z1,
              CAST(0 + CASE (
                  CAST([c2] AS BIGINT) * 3
                ) + CAST([c4] AS BIGINT)
                WHEN 0
                THEN 2
                WHEN 1
                THEN 0
                WHEN 2
                THEN 3
                WHEN 3
                THEN 1
                WHEN 4
                THEN 4
                WHEN 5
                THEN 2
              END AS BIGINT) AS z2
            FROM numbered
            WHERE
              NOT [node] IS NULL
          ) AS layer
        ) AS layer
      ) AS layer
    ) AS layer
  ) AS layer
)
SELECT
  0 AS q,
  (
    CAST([node] AS BIGINT) * 3
  ) + [c1] AS k,
  CAST(CASE
    WHEN SUM(CAST(CASE WHEN [c4] = 0 THEN [o] ELSE 0 END AS NUMERIC(38, 0))) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(CAST(CASE WHEN [c4] = 0 THEN [o] ELSE 0 END AS NUMERIC(38, 0)))
  END AS BIGINT) AS a0,
  CAST(CASE
    WHEN SUM(
      CAST(CASE
        WHEN (
          [c4] <> 0
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e0]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    ) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(
      CAST(CASE
        WHEN (
          [c4] <> 0
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e0]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    )
  END AS BIGINT) AS b0,
  CAST(CASE
    WHEN SUM(CAST(CASE WHEN [c4] = 1 THEN [o] ELSE 0 END AS NUMERIC(38, 0))) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(CAST(CASE WHEN [c4] = 1 THEN [o] ELSE 0 END AS NUMERIC(38, 0)))
  END AS BIGINT) AS a1,
  CAST(CASE
    WHEN SUM(
      CAST(CASE
        WHEN (
          [c4] <> 1
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e1]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    ) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(
      CAST(CASE
        WHEN (
          [c4] <> 1
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e1]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    )
  END AS BIGINT) AS b1,
  CAST(CASE
    WHEN SUM(CAST(CASE WHEN [c4] = 2 THEN [o] ELSE 0 END AS NUMERIC(38, 0))) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(CAST(CASE WHEN [c4] = 2 THEN [o] ELSE 0 END AS NUMERIC(38, 0)))
  END AS BIGINT) AS a2,
  CAST(CASE
    WHEN SUM(
      CAST(CASE
        WHEN (
          [c4] <> 2
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e2]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    ) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(
      CAST(CASE
        WHEN (
          [c4] <> 2
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e2]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    )
  END AS BIGINT) AS b2
FROM owned
GROUP BY
  (
    CAST([node] AS BIGINT) * 3
  ) + [c1]
UNION ALL
SELECT
  1 AS q,
  (
    (
      (
        CAST([node] AS BIGINT) * 3
      ) + [c1]
    ) * 2
  ) + [c2] AS k,
  CAST(CASE
    WHEN SUM(CAST(CASE WHEN [c4] = 0 THEN [o] ELSE 0 END AS NUMERIC(38, 0))) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(CAST(CASE WHEN [c4] = 0 THEN [o] ELSE 0 END AS NUMERIC(38, 0)))
  END AS BIGINT) AS a0,
  CAST(CASE
    WHEN SUM(
      CAST(CASE
        WHEN (
          [c4] <> 0
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e0]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    ) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(
      CAST(CASE
        WHEN (
          [c4] <> 0
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e0]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    )
  END AS BIGINT) AS b0,
  CAST(CASE
    WHEN SUM(CAST(CASE WHEN [c4] = 1 THEN [o] ELSE 0 END AS NUMERIC(38, 0))) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(CAST(CASE WHEN [c4] = 1 THEN [o] ELSE 0 END AS NUMERIC(38, 0)))
  END AS BIGINT) AS a1,
  CAST(CASE
    WHEN SUM(
      CAST(CASE
        WHEN (
          [c4] <> 1
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e1]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    ) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(
      CAST(CASE
        WHEN (
          [c4] <> 1
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e1]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    )
  END AS BIGINT) AS b1,
  CAST(CASE
    WHEN SUM(CAST(CASE WHEN [c4] = 2 THEN [o] ELSE 0 END AS NUMERIC(38, 0))) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(CAST(CASE WHEN [c4] = 2 THEN [o] ELSE 0 END AS NUMERIC(38, 0)))
  END AS BIGINT) AS a2,
  CAST(CASE
    WHEN SUM(
      CAST(CASE
        WHEN (
          [c4] <> 2
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e2]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    ) > 9223372036854775807
    THEN 9223372036854775807
    ELSE SUM(
      CAST(CASE
        WHEN (
          [c4] <> 2
        ) AND (
          [w] > 0
        )
        THEN CAST((
          [o] * [e2]
        ) AS BIGINT) / NULLIF([w], 0)
        ELSE 0
      END AS NUMERIC(38, 0))
    )
  END AS BIGINT) AS b2
FROM owned
GROUP BY
  (
    (
      (
        CAST([node] AS BIGINT) * 3
      ) + [c1]
    ) * 2
  ) + [c2];
