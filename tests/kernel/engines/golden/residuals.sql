CREATE OR REPLACE TABLE owned AS
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
    ) // "t",
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
                                                              ) // 1048576
                                                            ) * CASE WHEN (
                                                              "d0" & 2
                                                            ) = 2 THEN 1046530 ELSE 1048576 END
                                                          ) // 1048576
                                                        ) * CASE WHEN (
                                                          "d0" & 4
                                                        ) = 4 THEN 1044488 ELSE 1048576 END
                                                      ) // 1048576
                                                    ) * CASE WHEN (
                                                      "d0" & 8
                                                    ) = 8 THEN 1040416 ELSE 1048576 END
                                                  ) // 1048576
                                                ) * CASE WHEN (
                                                  "d0" & 16
                                                ) = 16 THEN 1032319 ELSE 1048576 END
                                              ) // 1048576
                                            ) * CASE WHEN (
                                              "d0" & 32
                                            ) = 32 THEN 1016315 ELSE 1048576 END
                                          ) // 1048576
                                        ) * CASE WHEN (
                                          "d0" & 64
                                        ) = 64 THEN 985046 ELSE 1048576 END
                                      ) // 1048576
                                    ) * CASE WHEN (
                                      "d0" & 128
                                    ) = 128 THEN 925365 ELSE 1048576 END
                                  ) // 1048576
                                ) * CASE WHEN (
                                  "d0" & 256
                                ) = 256 THEN 816632 ELSE 1048576 END
                              ) // 1048576
                            ) * CASE WHEN (
                              "d0" & 512
                            ) = 512 THEN 635993 ELSE 1048576 END
                          ) // 1048576
                        ) * CASE WHEN (
                          "d0" & 1024
                        ) = 1024 THEN 385750 ELSE 1048576 END
                      ) // 1048576
                    ) * CASE WHEN (
                      "d0" & 2048
                    ) = 2048 THEN 141909 ELSE 1048576 END
                  ) // 1048576
                ) * CASE WHEN (
                  "d0" & 4096
                ) = 4096 THEN 19205 ELSE 1048576 END
              ) // 1048576
            ) * CASE WHEN (
              "d0" & 8192
            ) = 8192 THEN 352 ELSE 1048576 END
          ) // 1048576
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
                                                              ) // 1048576
                                                            ) * CASE WHEN (
                                                              "d1" & 2
                                                            ) = 2 THEN 1046530 ELSE 1048576 END
                                                          ) // 1048576
                                                        ) * CASE WHEN (
                                                          "d1" & 4
                                                        ) = 4 THEN 1044488 ELSE 1048576 END
                                                      ) // 1048576
                                                    ) * CASE WHEN (
                                                      "d1" & 8
                                                    ) = 8 THEN 1040416 ELSE 1048576 END
                                                  ) // 1048576
                                                ) * CASE WHEN (
                                                  "d1" & 16
                                                ) = 16 THEN 1032319 ELSE 1048576 END
                                              ) // 1048576
                                            ) * CASE WHEN (
                                              "d1" & 32
                                            ) = 32 THEN 1016315 ELSE 1048576 END
                                          ) // 1048576
                                        ) * CASE WHEN (
                                          "d1" & 64
                                        ) = 64 THEN 985046 ELSE 1048576 END
                                      ) // 1048576
                                    ) * CASE WHEN (
                                      "d1" & 128
                                    ) = 128 THEN 925365 ELSE 1048576 END
                                  ) // 1048576
                                ) * CASE WHEN (
                                  "d1" & 256
                                ) = 256 THEN 816632 ELSE 1048576 END
                              ) // 1048576
                            ) * CASE WHEN (
                              "d1" & 512
                            ) = 512 THEN 635993 ELSE 1048576 END
                          ) // 1048576
                        ) * CASE WHEN (
                          "d1" & 1024
                        ) = 1024 THEN 385750 ELSE 1048576 END
                      ) // 1048576
                    ) * CASE WHEN (
                      "d1" & 2048
                    ) = 2048 THEN 141909 ELSE 1048576 END
                  ) // 1048576
                ) * CASE WHEN (
                  "d1" & 4096
                ) = 4096 THEN 19205 ELSE 1048576 END
              ) // 1048576
            ) * CASE WHEN (
              "d1" & 8192
            ) = 8192 THEN 352 ELSE 1048576 END
          ) // 1048576
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
                                                              ) // 1048576
                                                            ) * CASE WHEN (
                                                              "d2" & 2
                                                            ) = 2 THEN 1046530 ELSE 1048576 END
                                                          ) // 1048576
                                                        ) * CASE WHEN (
                                                          "d2" & 4
                                                        ) = 4 THEN 1044488 ELSE 1048576 END
                                                      ) // 1048576
                                                    ) * CASE WHEN (
                                                      "d2" & 8
                                                    ) = 8 THEN 1040416 ELSE 1048576 END
                                                  ) // 1048576
                                                ) * CASE WHEN (
                                                  "d2" & 16
                                                ) = 16 THEN 1032319 ELSE 1048576 END
                                              ) // 1048576
                                            ) * CASE WHEN (
                                              "d2" & 32
                                            ) = 32 THEN 1016315 ELSE 1048576 END
                                          ) // 1048576
                                        ) * CASE WHEN (
                                          "d2" & 64
                                        ) = 64 THEN 985046 ELSE 1048576 END
                                      ) // 1048576
                                    ) * CASE WHEN (
                                      "d2" & 128
                                    ) = 128 THEN 925365 ELSE 1048576 END
                                  ) // 1048576
                                ) * CASE WHEN (
                                  "d2" & 256
                                ) = 256 THEN 816632 ELSE 1048576 END
                              ) // 1048576
                            ) * CASE WHEN (
                              "d2" & 512
                            ) = 512 THEN 635993 ELSE 1048576 END
                          ) // 1048576
                        ) * CASE WHEN (
                          "d2" & 1024
                        ) = 1024 THEN 385750 ELSE 1048576 END
                      ) // 1048576
                    ) * CASE WHEN (
                      "d2" & 2048
                    ) = 2048 THEN 141909 ELSE 1048576 END
                  ) // 1048576
                ) * CASE WHEN (
                  "d2" & 4096
                ) = 4096 THEN 19205 ELSE 1048576 END
              ) // 1048576
            ) * CASE WHEN (
              "d2" & 8192
            ) = 8192 THEN 352 ELSE 1048576 END
          ) // 1048576
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
            CAST(10 + LIST_EXTRACT([-6, -3, 0, 3], CAST("c0" AS BIGINT) + 1) AS BIGINT) AS z0,
            CAST(-20 + LIST_EXTRACT([-5, -2, 1, 4], CAST("c0" AS BIGINT) + 1) AS BIGINT) AS z1,
            CAST(0 + LIST_EXTRACT([-4, -1, 2, 5], CAST("c0" AS BIGINT) + 1) AS BIGINT) AS z2
          FROM coded
          POSITIONAL JOIN nodes2
          WHERE
            NOT "node" IS NULL
        ) AS layer
      ) AS layer
    ) AS layer
  ) AS layer
) AS layer;
SELECT
  0 AS q,
  (
    CAST("node" AS BIGINT) * 3
  ) + "c1" AS k,
  CAST(SUM(CASE WHEN "c5" = 0 THEN "o" ELSE 0 END) AS BIGINT) AS a0,
  CAST(SUM(
    CASE
      WHEN (
        "c5" <> 0
      ) AND (
        "w" > 0
      )
      THEN (
        "o" * "e0"
      ) // NULLIF("w", 0)
      ELSE 0
    END
  ) AS BIGINT) AS b0,
  CAST(SUM(CASE WHEN "c5" = 1 THEN "o" ELSE 0 END) AS BIGINT) AS a1,
  CAST(SUM(
    CASE
      WHEN (
        "c5" <> 1
      ) AND (
        "w" > 0
      )
      THEN (
        "o" * "e1"
      ) // NULLIF("w", 0)
      ELSE 0
    END
  ) AS BIGINT) AS b1,
  CAST(SUM(CASE WHEN "c5" = 2 THEN "o" ELSE 0 END) AS BIGINT) AS a2,
  CAST(SUM(
    CASE
      WHEN (
        "c5" <> 2
      ) AND (
        "w" > 0
      )
      THEN (
        "o" * "e2"
      ) // NULLIF("w", 0)
      ELSE 0
    END
  ) AS BIGINT) AS b2
FROM owned
GROUP BY
  (
    CAST("node" AS BIGINT) * 3
  ) + "c1"
UNION ALL
SELECT
  1 AS q,
  (
    (
      (
        CAST("node" AS BIGINT) * 4
      ) + "c0"
    ) * 2
  ) + "c3" AS k,
  CAST(SUM(CASE WHEN "c5" = 0 THEN "o" ELSE 0 END) AS BIGINT) AS a0,
  CAST(SUM(
    CASE
      WHEN (
        "c5" <> 0
      ) AND (
        "w" > 0
      )
      THEN (
        "o" * "e0"
      ) // NULLIF("w", 0)
      ELSE 0
    END
  ) AS BIGINT) AS b0,
  CAST(SUM(CASE WHEN "c5" = 1 THEN "o" ELSE 0 END) AS BIGINT) AS a1,
  CAST(SUM(
    CASE
      WHEN (
        "c5" <> 1
      ) AND (
        "w" > 0
      )
      THEN (
        "o" * "e1"
      ) // NULLIF("w", 0)
      ELSE 0
    END
  ) AS BIGINT) AS b1,
  CAST(SUM(CASE WHEN "c5" = 2 THEN "o" ELSE 0 END) AS BIGINT) AS a2,
  CAST(SUM(
    CASE
      WHEN (
        "c5" <> 2
      ) AND (
        "w" > 0
      )
      THEN (
        "o" * "e2"
      ) // NULLIF("w", 0)
      ELSE 0
    END
  ) AS BIGINT) AS b2
FROM owned
GROUP BY
  (
    (
      (
        CAST("node" AS BIGINT) * 4
      ) + "c0"
    ) * 2
  ) + "c3";
