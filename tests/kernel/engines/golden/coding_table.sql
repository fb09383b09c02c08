CREATE OR REPLACE TABLE coded AS
SELECT
  CAST("c0" AS SMALLINT) AS c0,
  CAST("c1" AS SMALLINT) AS c1,
  CAST("g1" AS INT) AS g1,
  CAST("c2" AS SMALLINT) AS c2,
  CAST("c3" AS SMALLINT) AS c3,
  CAST("c4" AS SMALLINT) AS c4,
  CAST("c5" AS SMALLINT) AS c5
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
        WHEN "x1" IS NULL OR ISNAN("x1")
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST("x1", CAST(0.0 AS DOUBLE)), CAST(9.0 AS DOUBLE)) - CAST(0.0 AS DOUBLE)
              ) / CAST(0.5 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
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
          WHEN (
            CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) COLLATE "binary"
          ) IS NULL
          OR (
            CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) COLLATE "binary"
          ) = ''
          THEN NULL
          WHEN (
            CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) COLLATE "binary"
          ) = 'f''); DROP TABLE coded; --'
          THEN 0
          WHEN (
            CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) COLLATE "binary"
          ) = 'm"'
          THEN 1
          WHEN (
            CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) COLLATE "binary"
          ) = '(select 1)'
          THEN 2
          ELSE 3
        END AS c0,
        CAST("source_rows"."order" AS DOUBLE) AS x1,
        CASE
          WHEN "source_rows"."wage's group" IS NULL
          OR ISNAN(CAST("source_rows"."wage's group" AS DOUBLE))
          THEN 3
          WHEN CAST("source_rows"."wage's group" AS DOUBLE) = CAST(1.0 AS DOUBLE)
          THEN 0
          WHEN CAST("source_rows"."wage's group" AS DOUBLE) = CAST(2.5 AS DOUBLE)
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
          WHEN (
            CAST("source_rows"."y" AS TEXT) COLLATE "binary"
          ) = 'no'
          THEN 0
          WHEN (
            CAST("source_rows"."y" AS TEXT) COLLATE "binary"
          ) = 'yes'
          THEN 1
          WHEN (
            CAST("source_rows"."y" AS TEXT) COLLATE "binary"
          ) = 'maybe'
          THEN 2
          ELSE NULL
        END AS c5
      FROM (
        SELECT
          *
        FROM "source"."it's ""t"
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
        ON (
          CAST("source_rows"."many" AS TEXT) COLLATE "binary"
        ) = "v4"."t"
    ) AS numbers
  ) AS grids
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
  );
