// The coordinate in which the tree sees a feature of each kind, and back; as core/kinds.py has it.

interface Coordinate {
  of: (value: number) => number;
  value: (coordinate: number) => number;
}

const SAME: Coordinate = { of: (x) => x, value: (u) => u };
const LOG: Coordinate = { of: Math.log, value: Math.exp };
const CODES_APART = 3;
const CROWDED = 1 / 1024;

const KINDS: Record<string, Coordinate> = {
  gaussian: SAME,
  bernoulli: SAME,
  lognormal: LOG,
  gamma: LOG,
  exponential: { of: (x) => 4 * x ** 0.25, value: (u) => (u / 4) ** 4 },
  poisson: { of: (x) => 2 * Math.sqrt(x), value: (u) => (u * u) / 4 },
  categorical: {
    of: (x) => Math.min(x, CODES_APART) + CROWDED * Math.max(x - CODES_APART, 0),
    value: (u) => Math.round(u < CODES_APART ? u : CODES_APART + (u - CODES_APART) / CROWDED),
  },
};

export function coordinate(kind: string): Coordinate {
  return KINDS[kind] ?? SAME;
}
