"""How each learner is drawn, on the page and in the plot of the README."""

from __future__ import annotations

from privet.studies.pages.look import Look, style

LOOKS = {
    look.name: look
    for look in (
        Look("boosted", "#1d7a46", "#5fd08f", '<circle r="4"/>', 3.2),
        Look("boosted-delta", "#1d7a46", "#5fd08f", '<circle r="4"/>', 3.2),
        Look("noisy-gd", "#0b6b72", "#6fd6dd", '<path d="M0 4.8L4.5 -3.4H-4.5Z"/>', 1.8, "9 3 2 3"),
        Look("id3plus", "#2567a8", "#7db5ee", '<path d="M-3.6 -3.6H3.6V3.6H-3.6Z"/>'),
        Look("naive-bayes", "#5b7f95", "#9cc3d8", '<path d="M0 -4.4L4.2 3.4H-4.2Z"/>', 1.5),
        Look("diffpid3", "#4a5bb5", "#a3b0f5", '<path d="M0 4.4L4.2 -3.4H-4.2Z"/>', 1.5, "7 3"),
        Look("prior", "#7b877f", "#8d9a92", '<path d="M-4 0H4M0 -4V4" class="open"/>', 1.4, "1 4"),
        Look("dp-ebm-05", "#c2540a", "#ff9d52", '<path d="M0 -5L5 0L0 5L-5 0Z"/>', 2.2),
        Look("dp-ebm", "#b98a00", "#e8c55a", '<path d="M0 -4.4L4.4 0L0 4.4L-4.4 0Z" class="hollow"/>', 1.6, "7 3"),
        Look(
            "diffprivlib-forest", "#b3261e", "#ff8a80", '<path d="M-3.8 -3.8L3.8 3.8M-3.8 3.8L3.8 -3.8" class="open"/>'
        ),
        Look("diffprivlib-tree", "#93348f", "#e79be2", '<circle r="3.6" class="hollow"/>', 1.6, "7 3"),
        Look("sklearn-tree", "#3d4a42", "#c9d3cc", "", 1.4, "2 3"),
        Look("sklearn-forest", "#3d4a42", "#c9d3cc", "", 1.4, "9 4"),
        Look("xgboost", "#3d4a42", "#c9d3cc", "", 1.4, "9 3 2 3"),
        Look("xgboost-bins", "#3d4a42", "#c9d3cc", "", 1.4, "3 6"),
        Look("majority", "#7b877f", "#8d9a92", "", 1.2, "1 4"),
    )
}

STYLE = style(LOOKS.values())
