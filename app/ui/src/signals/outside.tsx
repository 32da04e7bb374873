// The values outside their bands, as a table.
import { useState } from "preact/hooks";
import { count, moment, number } from "../format";
import type { Row } from "../rows";
import type { View } from "../timeline/view";
import { type Edges, type Expected, expectedAt, isOutside } from "./band";
import type { Signal } from "./order";

const ROWS = 12;

interface Props {
  view: View;
  rows: Row[];
  signals: Signal[];
  edges: ReadonlyMap<string, Edges | null>;
  onSelect: (seq: number) => void;
}

interface Outside extends Expected {
  name: string;
  row: Row;
  value: number;
}

export function OutsideTable(props: Props): preact.JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Values outside the band as a table</summary>
      {isOpen && <Table {...props} />}
    </details>
  );
}

function Table({ onSelect, ...shown }: Props): preact.JSX.Element {
  const found = outside(shown);
  if (found.length === 0) return <p class="empty">None of the values shown.</p>;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Values outside the band">
      <table>
        <thead>
          <tr><th>Feature</th><th class="n">Sample</th><th>Time</th><th class="n">Value</th><th class="n">Expected from</th><th class="n">to</th><th><span class="hidden">Look</span></th></tr>
        </thead>
        <tbody>
          {found.map(({ name, row, value, low, high }) => (
            <tr key={`${row.seq} ${name}`}>
              <th scope="row" class="name">{name}</th>
              <td class="n">{count(row.seq)}</td>
              <td>{moment(row.time)}</td>
              <td class="n">{number(value)}</td>
              <td class="n">{number(low)}</td>
              <td class="n">{number(high)}</td>
              <td><button type="button" class="link" onClick={() => onSelect(row.seq)}>Why<span class="hidden"> value of sample {row.seq}</span></button></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The newest ones in view, newest first. */
function outside({ view: { axis, span }, rows, signals, edges }: Omit<Props, "onSelect">): Outside[] {
  const found: Outside[] = [];
  for (const row of [...rows].reverse()) {
    if (row.seq < span.from || row.seq > span.to) continue;
    for (const { name, k } of signals) {
      const [value, band] = [row.values?.[k], edges.get(name)];
      const expected = band == null ? null : expectedAt(band, axis.of(row));
      if (value != null && expected !== null && isOutside(value, expected)) found.push({ name, row, value, ...expected });
    }
    if (found.length >= ROWS) break;
  }
  return found.slice(0, ROWS);
}
