// Flagged samples by hour, as bars.
import { count, plural } from "../format";

/** Bars without axes, for a row of a table. */
export function Spark({ flags }: { flags: number[] }): preact.JSX.Element | null {
  const most = Math.max(...flags);
  if (most === 0) return null;
  return <svg class="spark" viewBox={`0 0 ${flags.length} 10`} preserveAspectRatio="none" aria-hidden="true"><Bars flags={flags} most={most} height={10} /></svg>;
}

interface Props {
  begin: number[];
  flags: number[];
}

/** The chart of all streams, with its content as a sentence and as a table. */
export function FlagsChart({ begin, flags }: Props): preact.JSX.Element {
  const most = Math.max(...flags);
  const total = flags.reduce((sum, value) => sum + value, 0);
  const top = flags.indexOf(most);
  const where = most === total ? "all in the hour" : `${count(most)} of them in the busiest hour,`;
  const said = total === 0 ? "No sample was flagged in the last 24 hours." : `${plural(total, "sample")} flagged in the last 24 hours, ${where} from ${hour(begin[top])}.`;
  return (
    <figure class="flags-chart">
      <svg viewBox={`0 0 ${flags.length} 40`} preserveAspectRatio="none" role="img" aria-label={said}>
        <Bars flags={flags} most={Math.max(most, 1)} height={40} />
      </svg>
      <div class="hours soft" aria-hidden="true"><span>{hour(begin[0])}</span><span>{hour(begin[12])}</span><span>now</span></div>
      <figcaption class="soft">{said}</figcaption>
      <details class="table">
        <summary>Flagged samples by hour</summary>
        <div class="scroll" tabIndex={0} role="group" aria-label="Flagged samples by hour">
          <table>
            <thead><tr><th scope="col">hour from</th><th scope="col" class="n">flagged</th></tr></thead>
            <tbody>{begin.map((at, place) => <tr key={at}><th scope="row">{hour(at)}</th><td class="n">{count(flags[place] ?? 0)}</td></tr>)}</tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function Bars({ flags, most, height }: { flags: number[]; most: number; height: number }): preact.JSX.Element {
  return (
    <>
      {flags.map((value, place) => {
        const tall = value === 0 ? 0 : Math.max((value / most) * height, height / 12);
        return <rect key={place} x={place + 0.08} y={height - tall} width={0.84} height={tall} />;
      })}
    </>
  );
}

function hour(seconds: number | undefined): string {
  return seconds === undefined ? "" : new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}
