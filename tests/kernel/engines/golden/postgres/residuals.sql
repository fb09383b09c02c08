WITH numbered AS (
  SELECT
    *
  FROM (
    SELECT
      "c0",
      "c1",
      "c2",
      "c3",
      "c4",
      "c5",
      "g1",
      (
        ARRAY[0, 4, 4]
      )["node" + 1] + CASE
        WHEN "node" IN (0)
        THEN CASE WHEN "g1" < 0 THEN 3 WHEN "g1" < 4 THEN 0 WHEN "g1" < 9 THEN 1 ELSE 2 END
        WHEN "node" IN (2)
        THEN "c3"
      END AS node
    FROM (
      SELECT
        *
      FROM (
        SELECT
          "c0",
          "c1",
          "c2",
          "c3",
          "c4",
          "c5",
          "g1",
          CASE
            WHEN (
              (
                "g1" >= 2
              ) AND (
                "g1" < 15
              )
            ) AND "c5" IN (0, 2)
            THEN CASE WHEN "node" = 3 THEN 0 WHEN "node" = 0 THEN 1 WHEN "node" = 1 THEN 2 END
          END AS node
        FROM (
          SELECT
            "c0",
            "c1",
            "c2",
            "c3",
            "c4",
            "c5",
            "g1",
            (
              ARRAY[0]
            )["node" + 1] + CASE WHEN "node" IN (0) THEN "c0" END AS node
          FROM (
            SELECT
              CAST("c0" AS SMALLINT) AS c0,
              CAST("c1" AS SMALLINT) AS c1,
              CAST("g1" AS INT) AS g1,
              CAST("c2" AS SMALLINT) AS c2,
              CAST("c3" AS SMALLINT) AS c3,
              CAST("c4" AS SMALLINT) AS c4,
              CAST("c5" AS SMALLINT) AS c5,
              0 AS node
            FROM (
              SELECT
                "c0",
                CASE WHEN "g1" < 0 THEN 2 WHEN "g1" < 6 THEN 0 ELSE 1 END AS c1,
                "g1",
                "c2",
                "c3",
                "c4",
                "c5"
              FROM (
                SELECT
                  "c0",
                  CASE
                    WHEN "x1" IS NULL OR "x1" = CAST('NaN' AS DOUBLE PRECISION)
                    THEN -1
                    ELSE LEAST(
                      CAST(FLOOR(
                        (
                          (
                            LEAST(GREATEST("x1", CAST(0.0 AS DOUBLE PRECISION)), CAST(9.0 AS DOUBLE PRECISION)) - CAST(0.0 AS DOUBLE PRECISION)
                          ) / CAST(0.5 AS DOUBLE PRECISION)
                        ) + CAST(1e-06 AS DOUBLE PRECISION)
                      ) AS BIGINT),
                      18
                    )
                  END AS g1,
                  "c2",
                  "c3",
                  "c4",
                  "c5"
                FROM (
                  SELECT
                    CASE
                      WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) IS NULL
                      OR CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = ''
                      THEN NULL
                      WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = 'f''); DROP TABLE coded; --'
                      THEN 0
                      WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = 'm"'
                      THEN 1
                      WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = '(select 1)'
                      THEN 2
                      ELSE 3
                    END AS c0,
                    CAST("source_rows"."order" AS DOUBLE PRECISION) AS x1,
                    CASE
                      WHEN "source_rows"."wage's group" IS NULL
                      THEN 3
                      WHEN "source_rows"."wage's group" = CAST('1' AS DECIMAL)
                      THEN 0
                      WHEN "source_rows"."wage's group" = CAST('2.5' AS DECIMAL)
                      THEN 1
                      ELSE NULL
                    END AS c2,
                    CASE
                      WHEN CASE
                        WHEN "source_rows"."select"
                        THEN 'true'
                        WHEN NOT "source_rows"."select"
                        THEN 'false'
                      END = 'true'
                      THEN 0
                      WHEN CASE
                        WHEN "source_rows"."select"
                        THEN 'true'
                        WHEN NOT "source_rows"."select"
                        THEN 'false'
                      END = 'false'
                      THEN 1
                      ELSE NULL
                    END AS c3,
                    CASE WHEN NOT "v4"."k" IS NULL THEN "v4"."k" ELSE NULL END AS c4,
                    CASE
                      WHEN CAST("source_rows"."y" AS TEXT) = 'no'
                      THEN 0
                      WHEN CAST("source_rows"."y" AS TEXT) = 'yes'
                      THEN 1
                      WHEN CAST("source_rows"."y" AS TEXT) = 'maybe'
                      THEN 2
                      ELSE NULL
                    END AS c5
                  FROM (
                    SELECT
                      *
                    FROM (
                      SELECT
                        CAST("sex""; DROP TABLE coded; --" AS TEXT) COLLATE "C" AS "sex""; DROP TABLE coded; --",
                        CASE
                          WHEN ABS("order") < CAST(1e-300 AS DOUBLE PRECISION)
                          THEN CAST(0 AS DOUBLE PRECISION)
                          ELSE "order"
                        END AS "order",
                        NULLIF("wage's group", CAST('NaN' AS DECIMAL)) AS "wage's group",
                        "select" AS "select",
                        CASE
                          WHEN OCTET_LENGTH(CAST("many" AS TEXT)) > 8192
                          THEN LEFT(CAST("many" AS TEXT), 4)
                          ELSE CAST("many" AS TEXT)
                        END COLLATE "C" AS "many",
                        CAST("y" AS TEXT) COLLATE "C" AS "y"
                      FROM ONLY "golden.schema"."it's ""t"
                      OFFSET '0'
                    ) AS stored
                    OFFSET '0'
                  ) AS source_rows
                  LEFT JOIN (VALUES
                    ('''0', 0),
                    ('''1', 1),
                    ('''2', 2),
                    ('''3', 3),
                    ('''4', 4),
                    ('''5', 5),
                    ('''6', 6),
                    ('''7', 7),
                    ('''8', 8),
                    ('''9', 9),
                    ('''10', 10),
                    ('''11', 11),
                    ('''12', 12),
                    ('''13', 13),
                    ('''14', 14),
                    ('''15', 15),
                    ('''16', 16),
                    ('''17', 17),
                    ('''18', 18),
                    ('''19', 19),
                    ('''20', 20),
                    ('''21', 21),
                    ('''22', 22),
                    ('''23', 23),
                    ('''24', 24),
                    ('''25', 25),
                    ('''26', 26),
                    ('''27', 27),
                    ('''28', 28),
                    ('''29', 29),
                    ('''30', 30),
                    ('''31', 31),
                    ('''32', 32)) AS v4(t, k)
                    ON CAST("source_rows"."many" AS TEXT) = "v4"."t"
                  OFFSET '0'
                ) AS numbers
                OFFSET '0'
              ) AS grids
              OFFSET '0'
            ) AS fits
            WHERE
              (
                NOT "c0" IS NULL AND (
                  NOT "c1" IS NULL AND NOT "c2" IS NULL
                )
              )
              AND (
                NOT "c3" IS NULL AND (
                  NOT "c4" IS NULL AND NOT "c5" IS NULL
                )
              )
            OFFSET '0'
          ) AS above
          OFFSET '0'
        ) AS above
        OFFSET '0'
      ) AS inside
      WHERE
        NOT "node" IS NULL
      OFFSET '0'
    ) AS above
    OFFSET '0'
  ) AS inside
  WHERE
    NOT "node" IS NULL
  OFFSET '0'
), owned AS (
  SELECT
    "node",
    "c0",
    "c1",
    "c3",
    "c5",
    "e0",
    "e1",
    "e2",
    "w",
    LEAST(
      (
        1024 * "w"
      ) / "t",
      CASE WHEN "c5" = 0 THEN 1024 WHEN "c5" = 1 THEN 512 WHEN "c5" = 2 THEN 100 ELSE 0 END
    ) AS o
  FROM (
    SELECT
      "node",
      "c0",
      "c1",
      "c3",
      "c5",
      "e0",
      "e1",
      "e2",
      "t",
      "t" - "e" AS w
    FROM (
      SELECT
        "node",
        "c0",
        "c1",
        "c3",
        "c5",
        "e0",
        "e1",
        "e2",
        "e0" + (
          "e1" + "e2"
        ) AS t,
        CASE WHEN "c5" = 0 THEN "e0" WHEN "c5" = 1 THEN "e1" WHEN "c5" = 2 THEN "e2" ELSE 0 END AS e
      FROM (
        SELECT
          "node",
          "c0",
          "c1",
          "c3",
          "c5",
          CASE
            WHEN "d0" < 16384
            THEN (
              (
                (
                  (
                    (
                      (
                        (
                          (
                            (
                              (
                                (
                                  (
                                    (
                                      (
                                        (
                                          (
                                            (
                                              (
                                                (
                                                  (
                                                    (
                                                      (
                                                        (
                                                          (
                                                            (
                                                              (
                                                                (
                                                                  CAST(1048576 AS BIGINT) * CASE WHEN (
                                                                    "d0" & 1
                                                                  ) = 1 THEN 1047552 ELSE 1048576 END
                                                                ) / 1048576
                                                              ) * CASE WHEN (
                                                                "d0" & 2
                                                              ) = 2 THEN 1046530 ELSE 1048576 END
                                                            ) / 1048576
                                                          ) * CASE WHEN (
                                                            "d0" & 4
                                                          ) = 4 THEN 1044488 ELSE 1048576 END
                                                        ) / 1048576
                                                      ) * CASE WHEN (
                                                        "d0" & 8
                                                      ) = 8 THEN 1040416 ELSE 1048576 END
                                                    ) / 1048576
                                                  ) * CASE WHEN (
                                                    "d0" & 16
                                                  ) = 16 THEN 1032319 ELSE 1048576 END
                                                ) / 1048576
                                              ) * CASE WHEN (
                                                "d0" & 32
                                              ) = 32 THEN 1016315 ELSE 1048576 END
                                            ) / 1048576
                                          ) * CASE WHEN (
                                            "d0" & 64
                                          ) = 64 THEN 985046 ELSE 1048576 END
                                        ) / 1048576
                                      ) * CASE WHEN (
                                        "d0" & 128
                                      ) = 128 THEN 925365 ELSE 1048576 END
                                    ) / 1048576
                                  ) * CASE WHEN (
                                    "d0" & 256
                                  ) = 256 THEN 816632 ELSE 1048576 END
                                ) / 1048576
                              ) * CASE WHEN (
                                "d0" & 512
                              ) = 512 THEN 635993 ELSE 1048576 END
                            ) / 1048576
                          ) * CASE WHEN (
                            "d0" & 1024
                          ) = 1024 THEN 385750 ELSE 1048576 END
                        ) / 1048576
                      ) * CASE WHEN (
                        "d0" & 2048
                      ) = 2048 THEN 141909 ELSE 1048576 END
                    ) / 1048576
                  ) * CASE WHEN (
                    "d0" & 4096
                  ) = 4096 THEN 19205 ELSE 1048576 END
                ) / 1048576
              ) * CASE WHEN (
                "d0" & 8192
              ) = 8192 THEN 352 ELSE 1048576 END
            ) / 1048576
            ELSE 0
          END AS e0,
          CASE
            WHEN "d1" < 16384
            THEN (
              (
                (
                  (
                    (
                      (
                        (
                          (
                            (
                              (
                                (
                                  (
                                    (
                                      (
                                        (
                                          (
                                            (
                                              (
                                                (
                                                  (
                                                    (
                                                      (
                                                        (
                                                          (
                                                            (
                                                              (
                                                                (
                                                                  CAST(1048576 AS BIGINT) * CASE WHEN (
                                                                    "d1" & 1
                                                                  ) = 1 THEN 1047552 ELSE 1048576 END
                                                                ) / 1048576
                                                              ) * CASE WHEN (
                                                                "d1" & 2
                                                              ) = 2 THEN 1046530 ELSE 1048576 END
                                                            ) / 1048576
                                                          ) * CASE WHEN (
                                                            "d1" & 4
                                                          ) = 4 THEN 1044488 ELSE 1048576 END
                                                        ) / 1048576
                                                      ) * CASE WHEN (
                                                        "d1" & 8
                                                      ) = 8 THEN 1040416 ELSE 1048576 END
                                                    ) / 1048576
                                                  ) * CASE WHEN (
                                                    "d1" & 16
                                                  ) = 16 THEN 1032319 ELSE 1048576 END
                                                ) / 1048576
                                              ) * CASE WHEN (
                                                "d1" & 32
                                              ) = 32 THEN 1016315 ELSE 1048576 END
                                            ) / 1048576
                                          ) * CASE WHEN (
                                            "d1" & 64
                                          ) = 64 THEN 985046 ELSE 1048576 END
                                        ) / 1048576
                                      ) * CASE WHEN (
                                        "d1" & 128
                                      ) = 128 THEN 925365 ELSE 1048576 END
                                    ) / 1048576
                                  ) * CASE WHEN (
                                    "d1" & 256
                                  ) = 256 THEN 816632 ELSE 1048576 END
                                ) / 1048576
                              ) * CASE WHEN (
                                "d1" & 512
                              ) = 512 THEN 635993 ELSE 1048576 END
                            ) / 1048576
                          ) * CASE WHEN (
                            "d1" & 1024
                          ) = 1024 THEN 385750 ELSE 1048576 END
                        ) / 1048576
                      ) * CASE WHEN (
                        "d1" & 2048
                      ) = 2048 THEN 141909 ELSE 1048576 END
                    ) / 1048576
                  ) * CASE WHEN (
                    "d1" & 4096
                  ) = 4096 THEN 19205 ELSE 1048576 END
                ) / 1048576
              ) * CASE WHEN (
                "d1" & 8192
              ) = 8192 THEN 352 ELSE 1048576 END
            ) / 1048576
            ELSE 0
          END AS e1,
          CASE
            WHEN "d2" < 16384
            THEN (
              (
                (
                  (
                    (
                      (
                        (
                          (
                            (
                              (
                                (
                                  (
                                    (
                                      (
                                        (
                                          (
                                            (
                                              (
                                                (
                                                  (
                                                    (
                                                      (
                                                        (
                                                          (
                                                            (
                                                              (
                                                                (
                                                                  CAST(1048576 AS BIGINT) * CASE WHEN (
                                                                    "d2" & 1
                                                                  ) = 1 THEN 1047552 ELSE 1048576 END
                                                                ) / 1048576
                                                              ) * CASE WHEN (
                                                                "d2" & 2
                                                              ) = 2 THEN 1046530 ELSE 1048576 END
                                                            ) / 1048576
                                                          ) * CASE WHEN (
                                                            "d2" & 4
                                                          ) = 4 THEN 1044488 ELSE 1048576 END
                                                        ) / 1048576
                                                      ) * CASE WHEN (
                                                        "d2" & 8
                                                      ) = 8 THEN 1040416 ELSE 1048576 END
                                                    ) / 1048576
                                                  ) * CASE WHEN (
                                                    "d2" & 16
                                                  ) = 16 THEN 1032319 ELSE 1048576 END
                                                ) / 1048576
                                              ) * CASE WHEN (
                                                "d2" & 32
                                              ) = 32 THEN 1016315 ELSE 1048576 END
                                            ) / 1048576
                                          ) * CASE WHEN (
                                            "d2" & 64
                                          ) = 64 THEN 985046 ELSE 1048576 END
                                        ) / 1048576
                                      ) * CASE WHEN (
                                        "d2" & 128
                                      ) = 128 THEN 925365 ELSE 1048576 END
                                    ) / 1048576
                                  ) * CASE WHEN (
                                    "d2" & 256
                                  ) = 256 THEN 816632 ELSE 1048576 END
                                ) / 1048576
                              ) * CASE WHEN (
                                "d2" & 512
                              ) = 512 THEN 635993 ELSE 1048576 END
                            ) / 1048576
                          ) * CASE WHEN (
                            "d2" & 1024
                          ) = 1024 THEN 385750 ELSE 1048576 END
                        ) / 1048576
                      ) * CASE WHEN (
                        "d2" & 2048
                      ) = 2048 THEN 141909 ELSE 1048576 END
                    ) / 1048576
                  ) * CASE WHEN (
                    "d2" & 4096
                  ) = 4096 THEN 19205 ELSE 1048576 END
                ) / 1048576
              ) * CASE WHEN (
                "d2" & 8192
              ) = 8192 THEN 352 ELSE 1048576 END
            ) / 1048576
            ELSE 0
          END AS e2
        FROM (
          SELECT
            "node",
            "c0",
            "c1",
            "c3",
            "c5",
            GREATEST("z0", "z1", "z2") - "z0" AS d0,
            GREATEST("z0", "z1", "z2") - "z1" AS d1,
            GREATEST("z0", "z1", "z2") - "z2" AS d2
          FROM (
            SELECT
              "node",
              "c0",
              "c1",
              "c3",
              "c5",
              CAST(10 + (
                ARRAY[-6, -3, 0, 3]
              )[CAST("c0" AS BIGINT) + 1] AS BIGINT) AS z0,
              CAST(-20 + (
                ARRAY[-5, -2, 1, 4]
              )[CAST("c0" AS BIGINT) + 1] AS BIGINT) AS z1,
              CAST(0 + (
                ARRAY[-4, -1, 2, 5]
              )[CAST("c0" AS BIGINT) + 1] AS BIGINT) AS z2
            FROM numbered
            WHERE
              NOT "node" IS NULL
            OFFSET '0'
          ) AS layer
          OFFSET '0'
        ) AS layer
        OFFSET '0'
      ) AS layer
      OFFSET '0'
    ) AS layer
    OFFSET '0'
  ) AS layer
  OFFSET '0'
)
SELECT
  CASE WHEN NOT "k0" IS NULL THEN 0 WHEN NOT "k1" IS NULL THEN 1 END AS q,
  COALESCE("k0", "k1") AS k,
  CAST(LEAST(SUM(CASE WHEN "c5" = 0 THEN "o" ELSE 0 END), 9223372036854775807) AS BIGINT) AS a0,
  CAST(LEAST(
    SUM(
      CASE
        WHEN (
          "c5" <> 0
        ) AND (
          "w" > 0
        )
        THEN (
          "o" * "e0"
        ) / NULLIF("w", 0)
        ELSE 0
      END
    ),
    9223372036854775807
  ) AS BIGINT) AS b0,
  CAST(LEAST(SUM(CASE WHEN "c5" = 1 THEN "o" ELSE 0 END), 9223372036854775807) AS BIGINT) AS a1,
  CAST(LEAST(
    SUM(
      CASE
        WHEN (
          "c5" <> 1
        ) AND (
          "w" > 0
        )
        THEN (
          "o" * "e1"
        ) / NULLIF("w", 0)
        ELSE 0
      END
    ),
    9223372036854775807
  ) AS BIGINT) AS b1,
  CAST(LEAST(SUM(CASE WHEN "c5" = 2 THEN "o" ELSE 0 END), 9223372036854775807) AS BIGINT) AS a2,
  CAST(LEAST(
    SUM(
      CASE
        WHEN (
          "c5" <> 2
        ) AND (
          "w" > 0
        )
        THEN (
          "o" * "e2"
        ) / NULLIF("w", 0)
        ELSE 0
      END
    ),
    9223372036854775807
  ) AS BIGINT) AS b2
FROM (
  SELECT
    (
      CAST("node" AS BIGINT) * 3
    ) + "c1" AS k0,
    (
      (
        (
          CAST("node" AS BIGINT) * 4
        ) + "c0"
      ) * 2
    ) + "c3" AS k1,
    "c5",
    "e0",
    "e1",
    "e2",
    "o",
    "w"
  FROM owned
  OFFSET '0'
) AS keyed
GROUP BY
  GROUPING SETS (
    (
      "k0"
    ),
    (
      "k1"
    )
  );
