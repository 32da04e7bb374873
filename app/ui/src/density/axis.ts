// An axis of the density plot. It runs along the grid's index, where the coordinates of every kind of feature are evenly spaced.
import { ticks } from "d3-array";
import { coordinate } from "../coordinates";

const TICKS = 5;
/** Free of samples at either end, so that no mark is cut in two. */
const MARGIN = 0.03;
/** Samples beyond the grid are shown up to so many of its widths away, and at the edge when they are farther. */
const BEYOND = 1;

export class Axis {
  private readonly first: number;
  private readonly step: number;
  private margin = 0;
  private readonly of: (value: number) => number;
  private readonly value: (coordinate: number) => number;

  /** values: those of the grid; start and end: the pixels between which the axis lies. */
  constructor(
    private readonly values: number[],
    kind: string,
    private readonly start: number,
    private readonly end: number,
    private low = 0,
    private high = values.length - 1,
  ) {
    ({ of: this.of, value: this.value } = coordinate(kind));
    this.first = this.of(values[0] as number);
    this.step = (this.of(values.at(-1) as number) - this.first) / (values.length - 1) || 1;
  }

  /** Stretch to hold values outside the grid, as far as is sensible. */
  stretch(shown: number[]): void {
    const size = this.values.length - 1;
    const at = shown.map((x) => this.index(this.of(x))).filter(Number.isFinite);
    this.low = Math.max(Math.min(0, ...at), -BEYOND * size);
    this.high = Math.min(Math.max(size, ...at), (1 + BEYOND) * size);
    this.margin = MARGIN * (this.high - this.low);
    this.low -= this.margin;
    this.high += this.margin;
  }

  /** The pixel of a grid index. */
  pixel(index: number): number {
    return this.start + ((index - this.low) / (this.high - this.low)) * (this.end - this.start);
  }

  /** The pixel of a value, moved in to the nearer edge if it lies outside. */
  place(value: number): number {
    const [low, high] = [this.low + this.margin, this.high - this.margin];
    return this.pixel(Math.min(Math.max(this.index(this.of(value)), low), high));
  }

  pixelOf(coordinate: number): number {
    return this.pixel(this.index(coordinate));
  }

  /** The coordinates of both ends. */
  get ends(): [number, number] {
    return [this.first + this.low * this.step, this.first + this.high * this.step];
  }

  ticks(): { at: number; value: number }[] {
    const [low, high] = this.ends.map(this.value) as [number, number];
    const found = ticks(low, high, TICKS).map((value) => ({ value, at: this.pixelOf(this.of(value)) }));
    return found.filter(({ at }) => Number.isFinite(at));
  }

  private index(coordinate: number): number {
    return (coordinate - this.first) / this.step;
  }
}
