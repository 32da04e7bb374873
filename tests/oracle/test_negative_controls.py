"""The comparison can fail: with one rule of the oracle broken on purpose, core and oracle part."""

import numpy as np
import pytest

from bench.paper.streams import three_gaussians
from core import DetectorConfig
from tests.core.samples import seasonal
from tests.oracle.decide_in_step import decide_in_step, in_stretches
from tests.oracle.in_step import InStep, labels_late
from tests.oracle.naive import NaiveDetector
from tests.oracle.naive_decision import NaiveDecision
from tests.oracle.naive_density import LEFT, RIGHT, NaiveDensity
from tests.oracle.naive_evidence import NaiveEvidence
from tests.oracle.naive_ordinary import NaiveOrdinary
from tests.oracle.naive_resemblance import NaiveResemblance, quantile
from tests.oracle.naive_scales import NaiveFeature, NaiveSpreads
from tests.oracle.naive_threshold import NAIVE_THRESHOLDS, NaiveGradient, NaiveWeighted
from tests.oracle.resemble_in_step import resemble_in_step

SEED = 30


class TiesGoRight(NaiveDensity):
    def nearer_side(self, node, x):
        left, right = (float((x - c) @ (x - c)) for c in node.centroids)
        return LEFT if left < right else RIGHT


class SplitsOneLate(NaiveDensity):
    def is_split_due(self, t):
        return t > 1 and super().is_split_due(t - 1)


class SplitsByLevelAlone(NaiveDensity):
    def separation(self, node):
        return super().separation(node) * 2**node.times_split


class OffsetToTheLetter(NaiveDensity):
    def hyperplane(self, left, right):
        normal, _ = super().hyperplane(left, right)
        return normal, float((left - right) @ (left + right) / 2)


class WeightsAfterComponents(NaiveDensity):
    def move_weights(self, samples):
        for node in self.nodes:
            node.counted += [s for s in samples if node.holds(s.value)]
        self.freeze()
        for sample in samples:
            sample.log_densities = [self.node_log_density(node, sample.value) for node in self.nodes]
        for node in self.nodes:
            node.counted = [s for s in node.counted if s not in samples]
        super().move_weights(samples)


class ThetaFixed(NaiveDensity):
    def theta(self, n, r, a, t):
        return 0.05


class RetractsHalf(NaiveDensity):
    """The sides of the 2-means keep what is retracted."""

    def centroid(self, node, side):
        gone = [s for s in node.counted if s.void]
        for sample in gone:
            sample.void = False
        center = super().centroid(node, side)
        for sample in gone:
            sample.void = True
        return center


class SharesInHalves(NaiveEvidence):
    def share_out(self, leaf, shares, at):
        super().share_out(leaf, [0.5, 0.5], at)


class HeirsKeepWhatIsRetracted(NaiveEvidence):
    def start(self, child, candidate, side, own, leaf):
        super().start(child, candidate, side, own, leaf)
        child.counted = [Copied(s) for s in child.counted]


class Copied:
    """A sample that does not hear of its retraction."""

    def __init__(self, sample):
        self.value, self.spread, self.void = sample.value, sample.spread, sample.void
        self.ordinal, self.moment = sample.ordinal, sample.moment


class HeirsLoseASample(NaiveEvidence):
    def start(self, child, candidate, side, own, leaf):
        super().start(child, candidate, side, own, leaf)
        child.counted = child.counted[1:]


class GaussianInPlaceOfStudent(NaiveEvidence):
    def widen(self, node):
        super().widen(node)
        node.freedom = 1e6


class OneStrength(NaiveEvidence):
    def best_prior(self, n, scatter, variance, parent, mean_count):
        scale = self.possible_scales(n, scatter, variance, parent)[0]
        return self.log_evidence(n, scatter, scale, 4.0, mean_count), 0.0, scale, 4.0


class NoCorrelations(NaiveEvidence):
    def possible_scales(self, n, scatter, variance, parent):
        return super().possible_scales(n, scatter, variance, parent)[:1]


class PlanesAreFree(NaiveEvidence):
    def gain(self, leaf, candidate):
        return super().gain(leaf, candidate) + 2.0


class MeansCountAsOne(NaiveEvidence):
    def log_evidence(self, n, S, T, a, k0):
        return super().log_evidence(n, S, T, a, 1.0)


class LooksLate(NaiveEvidence):
    def is_due(self, node, new, growth):
        return super().is_due(node, new, (growth[0] + 0.1, growth[1] + 0.1))


class OddsUnclipped(NaiveEvidence):
    def move_odds(self, samples):
        for sample in samples:
            sample.log_densities = [max(f, max(sample.log_densities) - 1) for f in sample.log_densities]
        super().move_odds(samples)


class OddsAfterComponents(NaiveEvidence):
    def move_odds(self, samples):
        for sample in samples:
            sample.log_densities = [f + 0.01 * i for i, f in enumerate(sample.log_densities)]
        super().move_odds(samples)


class NothingIsDrawnIn(NaiveEvidence):
    def drawn_in(self, x):
        return x


class NoLeastVariance(NaiveSpreads):
    def floor(self, least):
        return super().floor(least) * 0.0


class WithoutFloor(NaiveEvidence):
    spreads_type = NoLeastVariance


class FadesTooFast(NaiveEvidence):
    def weight_of(self, moment):
        return super().weight_of(moment) ** 1.01


class PriorsFollowRetractions(NaiveEvidence):
    """Tree, weights and priors stay when a sample goes."""

    def set_void(self, sample, void):
        super().set_void(sample, void)
        self.choose_priors([node for node in self.nodes if sample in node.counted])
        self.freeze()


class FilledByExpectation(NaiveEvidence):
    """Shares by the expected density of the whole sample, which favours nodes that are narrow where it is missing."""

    def evidence_for_imputing(self, given):
        return [expected for expected, _, _, _ in given]


class AllNodesAreNormal(NaiveEvidence):
    def normality(self, n, of):
        return 1.0


class RarerThanItself(NaiveEvidence):
    def normality(self, n, of):
        return super().normality(n, of + 1)


class SettlesAtOnce(NaiveResemblance):
    def settled(self):
        return len(self.samples)


class SettlesTwiceAsFast(NaiveResemblance):
    def step(self, n):
        return max(super().step(n) // 2, 1)


class EverySeventhOfEight(NaiveResemblance):
    def normals(self):
        self.samples, samples = self.samples[1:], self.samples
        found = super().normals()
        self.samples = samples
        return found


class FloorWithItself(NaiveResemblance):
    def floor(self, anomalies, h):
        return super().floor(anomalies, h) + 0.1 / len(anomalies)


class WithoutLeastWidth(NaiveResemblance):
    def width(self, normals):
        return super().width(normals) - 1e-6


class GaussianKernel(NaiveResemblance):
    def kernel(self, x, other, h):
        return np.exp(1 - super().kernel(x, other, h) ** -0.5)


class SpreadOfAll(NaiveResemblance):
    def spread(self):
        self.samples, samples = [(x, s) for x, s in self.samples for _ in range(2)], self.samples
        found = super().spread()
        self.samples = samples
        return found


class SpreadHasNoBound(NaiveResemblance):
    def spread(self):
        scores = sorted(score for _, score in self.samples[: self.settled()][-1000:])
        return quantile(scores, 0.9) - quantile(scores, 0.5)


class WithdrawnStays(NaiveResemblance):
    def label(self, seq, label, x):
        if label != 0:
            super().label(seq, label, x)


class RevisedStays(NaiveResemblance):
    def label(self, seq, label, x):
        before = [known for known in self.labelled if known[0] == seq and known[1] == -label]
        super().label(seq, label, x)
        self.labelled += before


class LabelledNormalsAreLeftOut(NaiveResemblance):
    def normals(self):
        self.labelled, labelled = [known for known in self.labelled if known[1] > 0], self.labelled
        found = super().normals()
        self.labelled = labelled
        return found


class TellsOldScores(NaiveDetector):
    def telling(self, row):
        return row.score, row.level


class HearsOfEverySample(NaiveDetector):
    def pass_by(self, row, *, decide):
        super().pass_by(row, decide=decide)
        if not row.ordinary:
            sample = self.density.examine(self.scaled(row.x, row.time), row.time)
            self.resemblance.samples.append((sample.value, row.score - self.resemblance.added(sample.value)))


class LearnsBeforeItScores(NaiveDetector):
    def pass_by(self, row, *, decide):
        if self.is_wanted(row):
            self.learn(row, self.density.examine(self.scaled(row.x, row.time)))
        row.label, label = 1, row.label  # not a second time
        super().pass_by(row, decide=decide)
        row.label = label


class StepWithoutCost(NaiveGradient):
    def step_size(self):
        return super().step_size() * min(self.cost.values())


class WithoutPrior(NaiveWeighted):
    def prior_cost(self, cut, r):
        return 0.0


class RateAsExpected(NaiveWeighted):
    def rate(self):
        return self.config.expected_anomaly_rate


class EveryOneCounts(NaiveDecision):
    def counts(self, n_moving):
        return True


class NothingStandsStill(NaiveDecision):
    def stands_still(self):
        return False


class NeverSettles(NaiveDecision):
    def settle(self, seq, above):
        pass


class NormalLabelsEndNothing(NaiveDecision):
    def is_dismissed(self):
        return False


class OneNormalLabelEndsAll(NaiveDecision):
    def is_dismissed(self):
        return self.votes_for() > 0


class NothingIsConfirmed(NaiveDecision):
    def is_confirmed(self):
        return False


class ForgetsNoGap(NaiveDecision):
    def is_long_ago(self, time):
        return False


class KeepsTheFirst(NaiveOrdinary):
    def window(self):
        return self.all[-2000:]


class TailAlone(NaiveOrdinary):
    def chance(self, score):
        tail = super().chance(score)
        reached = sum(1 for other in self.kept() if other >= score)
        return tail / (1 + reached) if score > self.start else tail


class LabelsSetNothingAside(NaiveOrdinary):
    def label(self, seq, label):
        pass


class NothingComesBack(NaiveOrdinary):
    def label(self, seq, label):
        if label > 0:
            super().label(seq, label)


class AnomalousScoresCount(NaiveDecision):
    ordinary_type = LabelsSetNothingAside


class WithdrawnLabelsSetAside(NaiveDecision):
    ordinary_type = NothingComesBack


class RestartsForgetLabels(NaiveDecision):
    def restart(self, scores):
        super().restart([(0, score) for _, score in scores])


class FirstIsKept(NaiveDecision):
    ordinary_type = KeepsTheFirst


class CountsAreIgnored(NaiveDecision):
    ordinary_type = TailAlone


DECISIONS = {
    "every flagged sample counts": EveryOneCounts,
    "nothing stands still": NothingStandsStill,
    "never settles": NeverSettles,
    "normal labels end nothing": NormalLabelsEndNothing,
    "one normal label ends all": OneNormalLabelEndsAll,
    "nothing is confirmed": NothingIsConfirmed,
    "gaps are forgotten": ForgetsNoGap,
    "anomalous scores count": AnomalousScoresCount,
    "restarts forget labels": RestartsForgetLabels,
    "the first scores are kept": FirstIsKept,
    "counts are ignored": CountsAreIgnored,
}


@pytest.mark.parametrize("rule", DECISIONS)
def test_a_broken_decision_is_noticed(rule):
    """Some rules need labels that come at the right moment: one of ten histories has them."""
    print(f"seed {SEED}")
    config = DetectorConfig(n_features=2, incident_close_seconds=30.0)
    with pytest.raises(AssertionError):
        decide_ten(config, DECISIONS[rule])


def decide_ten(config, naive_type):
    for seed in range(SEED, SEED + 10):
        rng = np.random.default_rng(seed)
        labelled = 0.03 if seed % 4 else 0.2  # of either kind, or as they should be
        decide_in_step(config, in_stretches(), rng, labelled=labelled, far=25.0, naive_type=naive_type)


RESEMBLANCE = (
    *(SettlesAtOnce, SettlesTwiceAsFast, EverySeventhOfEight, FloorWithItself, WithoutLeastWidth, GaussianKernel),
    *(SpreadOfAll, SpreadHasNoBound, WithdrawnStays, RevisedStays, LabelledNormalsAreLeftOut),
)


@pytest.mark.parametrize("rule", RESEMBLANCE)
def test_a_broken_resemblance_is_noticed(rule):
    with pytest.raises(AssertionError):
        resemble_in_step(SEED, rule)


def test_without_a_broken_resemblance_nothing_is_noticed():
    resemble_in_step(SEED)


def broken(density=NaiveDensity, threshold=None, resemblance=NaiveResemblance):
    """A detector type with another density, resemblance, or threshold whatever the config names."""
    rules = NAIVE_THRESHOLDS if threshold is None else dict.fromkeys(NAIVE_THRESHOLDS, threshold)
    profile = "default" if issubclass(density, NaiveEvidence) else "paper"
    return type(
        "Broken",
        (NaiveDetector,),
        {f"{profile}_density": density, "threshold_types": rules, "resemblance_type": resemblance},
    )


DEFAULT = {"warmup": 12, "expected_anomaly_rate": 0.2, "cost_false_negative": 3.0, "split": "both", "beta": 1.5}
PAPER = {"profile": "paper", "learn_from": "all", "cost_false_negative": 3.0, "cost_false_positive": 0.5}

BROKEN = {
    "ties go right": (PAPER, broken(TiesGoRight)),
    "beta^k + 1": (PAPER, broken(SplitsOneLate)),
    "ratio by level alone": (PAPER, broken(SplitsByLevelAlone)),
    "offset to the letter": (PAPER, broken(OffsetToTheLetter)),
    "weights after components": (PAPER, broken(WeightsAfterComponents)),
    "theta fixed": (PAPER, broken(ThetaFixed)),
    "step without C_min": (PAPER, broken(threshold=StepWithoutCost)),
    "retracts half": (PAPER, broken(RetractsHalf)),
    "shares in halves": (DEFAULT, broken(SharesInHalves)),
    "heirs keep what is retracted": (DEFAULT, broken(HeirsKeepWhatIsRetracted)),
    "heirs lose a sample": (DEFAULT, broken(HeirsLoseASample)),
    "Gaussian": (DEFAULT, broken(GaussianInPlaceOfStudent)),
    "one strength": (DEFAULT, broken(OneStrength)),
    "no correlations": (DEFAULT, broken(NoCorrelations)),
    "planes are free": (DEFAULT, broken(PlanesAreFree)),
    "means count as one": (DEFAULT, broken(MeansCountAsOne)),
    "looks late": (DEFAULT, broken(LooksLate)),
    "odds of near densities": (DEFAULT, broken(OddsUnclipped)),
    "odds by other densities": (DEFAULT, broken(OddsAfterComponents)),
    "nothing is drawn in": (DEFAULT, broken(NothingIsDrawnIn)),
    "no floor": (DEFAULT, broken(WithoutFloor)),
    "fades too fast": (DEFAULT | {"half_life_samples": 50.0}, broken(FadesTooFast)),
    "priors follow retractions": (DEFAULT, broken(PriorsFollowRetractions)),
    "all nodes are normal": (DEFAULT, broken(AllNodesAreNormal)),
    "rarer than itself": (DEFAULT, broken(RarerThanItself)),
    "withdrawn labels stay": (DEFAULT, broken(NaiveEvidence, resemblance=WithdrawnStays)),
    "background settles at once": (DEFAULT, broken(NaiveEvidence, resemblance=SettlesAtOnce)),
    "hears of every sample": (DEFAULT | {"expected_anomaly_rate": 0.5}, HearsOfEverySample),
    "labels tell old scores": (DEFAULT, TellsOldScores),
    "withdrawn labels set aside": (DEFAULT, type("Broken", (NaiveDetector,), {"decision": WithdrawnLabelsSetAside})),
    "learn before score": (DEFAULT, LearnsBeforeItScores),
    "threshold without prior": (DEFAULT, broken(threshold=WithoutPrior)),
    "rate as expected": (DEFAULT | {"expected_anomaly_rate": 0.02}, broken(threshold=RateAsExpected)),
    "filled by expectation": (DEFAULT, broken(FilledByExpectation)),
}


class NeverCoarse(NaiveSpreads):
    def tell(self, j, spread, coarse):
        super().tell(j, spread, False)


class FollowsAnyWidth(NaiveSpreads):
    def look(self):
        self.most = [1e300] * len(self.most)
        return super().look()


class LastStepIsTheUnit(NaiveFeature):
    def wake(self, x):
        woken = super().wake(x)
        self.scale *= 2.0 if woken and not self.is_silent else 1.0
        return woken


class TellsHoweverRare(NaiveFeature):
    def __init__(self, warmup, location, scale, rate):
        super().__init__(warmup, location, scale, 0.0)


class PriorsStay(NaiveEvidence):
    def choose_priors(self, nodes):
        if not self.followed:
            super().choose_priors(nodes)


class ScoresStay(NaiveDecision):
    def begin_again(self, scores):
        pass


class UnitsAddNothing(NaiveDecision):
    base = property(lambda self: 0.0, lambda self, value: None)


SCALES = {
    "nothing is coarse": ("wakes", broken(type("Fine", (NaiveEvidence,), {"spreads_type": NeverCoarse}))),
    "follows any width": ("widens", broken(type("Wide", (NaiveEvidence,), {"spreads_type": FollowsAnyWidth}))),
    "another unit": ("wakes", type("Broken", (NaiveDetector,), {"feature_type": LastStepIsTheUnit})),
    "tells however rare": ("is rare", type("Broken", (NaiveDetector,), {"feature_type": TellsHoweverRare})),
    "priors stay": ("wakes", broken(PriorsStay)),
    "scores stay": ("wakes", type("Broken", (NaiveDetector,), {"decision": ScoresStay})),
    "units add nothing": ("wakes", type("Broken", (NaiveDetector,), {"decision": UnitsAddNothing})),
    None: ("wakes", NaiveDetector),
}


@pytest.mark.parametrize("rule", SCALES)
def test_a_broken_scale_is_noticed(rule):
    print(f"seed {SEED}")
    name, detector_type = SCALES[rule]
    rng, row = np.random.default_rng(SEED), np.arange(300)
    X = rng.normal(size=(300, 2))
    X[:, 1] = {
        "wakes": np.where(row < 40, 0.0, 1e-3 * X[:, 1]),
        "widens": np.where(row < 100, X[:, 1], 1e3 * X[:, 1]),
        "is rare": np.where(rng.random(300) < 0.04, X[:, 1], 0.0),
    }[name]
    X = X[: 300 if name != "wakes" else 90]
    config = DetectorConfig(n_features=2, warmup=12, max_nodes=5, round_growth=0.1, expected_anomaly_rate=0.1)
    run = InStep(config, detector_type(config))
    if rule is None:
        run.run(X, {})
    else:
        with pytest.raises(AssertionError):
            run.run(X, {})


def stream():
    """With holes, two gross outliers, and enough anomalies."""
    X, anomalous = three_gaussians(SEED, 80)
    X[np.arange(20, 80, 5), 0] = np.nan
    X[[33, 58]] = [[300.0, -100.0], [-30.0, 50.0]]
    anomalous[5::9] = True
    return X, anomalous


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_noticed(rule):
    print(f"seed {SEED}")
    X, anomalous = stream()
    settings, detector_type = BROKEN[rule]
    config = DetectorConfig(n_features=2, **settings)
    with pytest.raises(AssertionError):
        InStep(config, detector_type(config)).run(X, labels_late(anomalous, SEED, share=0.9))


@pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])
def test_without_a_broken_rule_nothing_is_noticed(settings):
    X, anomalous = stream()
    config = DetectorConfig(n_features=2, **settings)
    InStep(config, broken()(config)).run(X, labels_late(anomalous, SEED, share=0.9))


class ScoresTheContextToo(NaiveEvidence):
    def log_given(self, z, log_densities):
        return self.log_score(log_densities)


class ExpectsMissingContext(NaiveEvidence):
    def log_given(self, z, log_densities):
        known = self.context & ~np.isnan(z)
        return self.log_score(log_densities) - self.log_score([self.of_part(node, z, known) for node in self.nodes])


class CutsForTheContext(NaiveEvidence):
    def doubt(self, leaf, candidate):
        return -1e9


class NeverInDoubt(NaiveEvidence):
    def doubt(self, leaf, candidate):
        return 0.0


class PriorsForTheContext(NaiveEvidence):
    def best_prior(self, n, scatter, variance, parent, mean_count):
        self.context, context = np.zeros(self.m, bool), self.context
        _, _, scale, strength = super().best_prior(n, scatter, variance, parent, mean_count)
        self.context = context
        whole, given = (
            f(n, scatter, scale, strength, mean_count) for f in (self.log_evidence, self.evidence_of_context)
        )
        return whole, given, scale, strength


class ByUtc(NaiveDetector):
    def share_of(self, period, timezone, time):
        return super().share_of(period, "UTC", time)


class SmallerCircles(NaiveDetector):
    def calendar(self, time):
        return 0.99 * super().calendar(time)


class WithTheVolumeOfContext(NaiveDetector):
    def log_volume(self):
        return float(np.log(self.scale).sum())


CONTEXT = {
    "scores the context too": broken(ScoresTheContextToo),
    "expects missing context": broken(ExpectsMissingContext),
    "cuts for the context": broken(CutsForTheContext),
    "never in doubt": broken(NeverInDoubt),
    "priors for the context": broken(PriorsForTheContext),
    "by UTC": ByUtc,
    "smaller circles": SmallerCircles,
    "volume of context": WithTheVolumeOfContext,
    None: NaiveDetector,
}


@pytest.mark.parametrize("rule", CONTEXT)
def test_a_broken_context_is_noticed(rule):
    X, _, times = seasonal(SEED, 150, 2)
    X[:, 1] = np.round(X[:, 1])
    calendar = {"periods": ["day"], "timezone": "Asia/Tokyo"}
    features = [{"name": "a"}, {"name": "b", "role": "context"}]
    settings = {"features": features, "warmup": 16, "round_growth": 0.05, "split": "both", "beta": 1.3}
    config = DetectorConfig(**settings, calendar=calendar if rule in ("by UTC", "smaller circles") else None)
    run = InStep(config, CONTEXT[rule](config))
    clock = times if config.calendar else None
    if rule is None:
        run.run(X, {}, times=clock)
    else:
        with pytest.raises(AssertionError):
            run.run(X, {}, times=clock)
