// Drag, wheel and click on a chart.
import type uPlot from "uplot";

export interface Gestures {
  pan: (share: number) => void;
  zoom: (factor: number, at: number) => void;
  /** Choose the sample at a place, in pixels. */
  pick: (plot: uPlot, x: number, y: number) => void;
  /** Mark from one place of the axis to another; isOn: also without the Shift key. */
  brush: { isAllowed: boolean; isOn: boolean; mark: (from: number, to: number) => void };
}

const DRAG_PX = 4;
const WHEEL_STEP = 1.25;

/** Follow pointer and wheel; the wheel zooms with Ctrl, or once the chart has the focus, and else scrolls the page. */
export function listen(plot: uPlot, newest: { readonly current: { gestures: Gestures } }): void {
  const { over } = plot;
  const chart = over.closest<HTMLElement>("[tabindex]");
  const at = (event: PointerEvent): number => plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
  let held: { x: number; isDrag: boolean; brushed: number | null } | null = null;

  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { isAllowed, isOn } = newest.current.gestures.brush;
    const isBrush = isAllowed && (event.shiftKey || isOn);
    held = { x: event.clientX, isDrag: false, brushed: isBrush ? at(event) : null };
    chart?.focus({ preventScroll: true }); // uPlot keeps the browser from doing so
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    if (held === null) return;
    const moved = event.clientX - held.x;
    held.isDrag ||= Math.abs(moved) > DRAG_PX;
    if (!held.isDrag) return;
    if (held.brushed !== null) return newest.current.gestures.brush.mark(held.brushed, at(event));
    newest.current.gestures.pan(-moved / over.clientWidth);
    held.x = event.clientX;
  });
  over.addEventListener("pointerup", (event) => {
    if (held !== null && !held.isDrag) newest.current.gestures.pick(plot, event.offsetX, event.offsetY);
    held = null;
  });
  over.addEventListener("pointercancel", () => {
    held = null;
  });
  over.addEventListener(
    "wheel",
    (event) => {
      const isMeant = event.ctrlKey || event.metaKey || chart === document.activeElement;
      if (!isMeant || event.deltaY === 0) return;
      event.preventDefault();
      newest.current.gestures.zoom(event.deltaY > 0 ? WHEEL_STEP : 1 / WHEEL_STEP, event.offsetX / over.clientWidth);
    },
    { passive: false },
  );
}
