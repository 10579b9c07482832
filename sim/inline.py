"""The names that stand for laws on a command line, as plain numbers: help lists them, and loads no laws for it."""

# Rows of mean and standard deviation in seconds, and weight: seed 003 (the AMB repository), measured on the clusters of these names.
MIXTURES: dict[str, tuple[tuple[float, float, float], ...]] = {
    "niagara": ((0, 0, 0.4), (0, 0.4, 0.3), (2, 0.3, 0.2), (5, 0.3, 0.1)),
    "cedar": ((0, 0, 0.4), (0.05, 0.04, 0.3), (0.15, 0.03, 0.2), (0.25, 0.03, 0.1)),
}
# Ranks of two jobs with stragglers: ByteDance StragglerAnalysis (Apache-2.0), Lin et al., OSDI 2025.
RECORDED = {"bytedance-ar": "bytedance_ar.toml", "bytedance-st": "bytedance_st.toml"}
NAMES = ("none", *MIXTURES)
