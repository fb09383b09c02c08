"""How each learner is drawn, on the page and in the plot of the README."""

from __future__ import annotations

from privet.report.chart import Look

LOOKS = {
    "boosted": Look("s1", "circle", 3.2),
    "boosted-delta": Look("s1", "circle", 3.2),
    "noisy-gd": Look("s7", "down", dash="9 3 2 3"),
    "id3plus": Look("s3", "square"),
    "naive-bayes": Look("s3", "triangle", 1.5, strength=0.7),
    "diffpid3": Look("s3", "down", 1.5, "7 3"),
    "prior": Look("s8", "open plus", 1.4, "1 4"),
    "dp-ebm-05": Look("s2", "diamond", 2.2),
    "dp-ebm": Look("s5", "hollow diamond", 1.6, "7 3"),
    "diffprivlib-forest": Look("s6", "cross"),
    "diffprivlib-tree": Look("s4", "ring", 1.6, "7 3"),
    "sklearn-tree": Look("ink", "", 1.4, "2 3"),
    "sklearn-forest": Look("ink", "", 1.4, "9 4"),
    "xgboost": Look("ink", "", 1.4, "9 3 2 3"),
    "xgboost-bins": Look("ink", "", 1.4, "3 6"),
    "majority": Look("s8", "", 1.2, "1 4"),
}
