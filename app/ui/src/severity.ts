// Severity in words: the same sentence wherever a person looks.
import { count } from "./format";

/** Up to here a severity is a chance; beyond, only a rank. */
const RARE = 2;

/** What a severity says; app/severity.py says the same. */
export function meaning(severity: number | null): string {
  if (severity === null) return "No severity yet: the stream was warming up.";
  const told = `Severity ${severity.toFixed(1)}:`;
  if (severity > RARE) return `${told} fewer than one ordinary sample in ${count(10 ** RARE)} scores as high; the larger, the graver.`;
  const every = Math.round(10 ** severity);
  return every < 2 ? `${told} most ordinary samples score as high.` : `${told} about one ordinary sample in ${count(every)} scores as high.`;
}
