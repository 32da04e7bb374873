// Numbers and times as people read them.

// made once: to make one takes longer than to use it
const DECIMALS = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits === 2 ? 2 : 0, maximumFractionDigits: digits }));

/** Four significant digits, and no more than a table's column takes. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3;
  return (DECIMALS[digits] as Intl.NumberFormat).format(value);
}

/** A measured value: so many significant digits, but no zero after them, and all of its whole part. */
export function measured(value: number, digits = 4): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-3)) return value.toExponential(2);
  return size >= 1000 ? count(value) : value.toLocaleString("en", { maximumSignificantDigits: digits });
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}

export function percent(share: number): string {
  const digits = share > 0 && share < 0.001 ? 2 : share < 0.0995 ? 1 : 0;
  return share.toLocaleString("en", { style: "percent", maximumFractionDigits: digits });
}

export function plural(many: number, one: string): string {
  return `${count(many)} ${one}${many === 1 ? "" : "s"}`;
}

/** A name short enough for an axis: its beginning and its end. */
export function shortened(name: string, most = 40): string {
  return name.length <= most ? name : `${name.slice(0, most / 2 - 1)}…${name.slice(1 - most / 2 + 1)}`;
}

/** How long something takes, in its greatest unit. */
export function duration(seconds: number): string {
  const units: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"]];
  const [size, unit] = units.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${count(Math.floor(Math.max(seconds, 0) / size))} ${unit}`;
}

export function moment(seconds: number | null): string {
  if (seconds === null) return "";
  return new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}
