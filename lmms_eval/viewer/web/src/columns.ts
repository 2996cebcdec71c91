// Columns of samples over all chosen tasks: told by an index, loaded in pieces when they are shown, filtered or sorted by.
import { load } from "./chunks";
import type { ColumnFacts, RowTexts, TaskIndex } from "./types";

/** One task's part of a column: its samples are the rows from `first` on. */
interface Section {
  task: string;
  first: number;
  index: TaskIndex;
  number: number;
  facts: ColumnFacts;
  codes?: Promise<number[]>;
}

const collator = new Intl.Collator("en", { numeric: true });
export const natural = collator.compare;

export abstract class Column {
  protected readonly sections: Section[] = [];
  private readonly there = new Map<string, number>();
  private readonly coming = new Map<string, Promise<void>>();

  constructor(readonly key: string, readonly count: number) {}

  abstract at(row: number): string | number | null;

  /** For each row a number by which rows are ordered; NaN where there is none. All rows have to be loaded. */
  abstract ranks(): ArrayLike<number>;

  protected abstract take(section: Section, piece: string, first: number, length: number): Promise<void>;

  add(task: string, first: number, index: TaskIndex, number: number): void {
    const facts = index.columns[number];
    if (facts) this.sections.push({ task, first, index, number, facts });
  }

  /** Pieces that are not there yet, of these rows or of all. */
  private missing(rows?: readonly number[]): Map<string, () => Promise<void>> {
    const found = new Map<string, () => Promise<void>>();
    for (const section of this.sections) {
      const { facts, index, task, number } = section;
      const isWhole = facts.empty || facts.from !== undefined || facts.same || facts.all !== undefined;
      const per = isWhole ? index.count : facts.kind === "texts" ? index.per_rows : index.per_column;
      const name = isWhole || facts.kind !== "texts" ? `column-${task}-${number}` : `rows-${task}`;
      const want = (piece: number) => {
        const key = `${name}-${piece}`;
        if (this.there.has(key) || found.has(key)) return;
        const first = piece * per;
        const length = Math.min(per, index.count - first);
        found.set(key, () => this.once(key, section.first + first, () => this.take(section, key, first, length)));
      };
      if (rows === undefined) for (let piece = 0; piece * per < index.count; piece++) want(piece);
      else for (const row of rows) if (row >= section.first && row < section.first + index.count) want(Math.floor((row - section.first) / per));
    }
    return found;
  }

  /** Takes a piece once, however many ask for it meanwhile; one that failed may be asked for again. */
  private once(key: string, row: number, take: () => Promise<void>): Promise<void> {
    const coming = this.coming.get(key) ?? take().then(() => void this.there.set(key, row)).finally(() => this.coming.delete(key));
    this.coming.set(key, coming);
    return coming;
  }

  has = (rows?: readonly number[]): boolean => this.missing(rows).size === 0;

  /** The first row of each piece that is there. */
  loaded = (): number[] => [...this.there.values()];

  load = async (rows?: readonly number[]): Promise<void> => {
    await Promise.all([...this.missing(rows).values()].map((read) => read()));
  };

  get isEmpty(): boolean {
    return this.sections.every((section) => section.facts.empty);
  }
}

export class Numbers extends Column {
  private readonly cells = new Float64Array(this.count).fill(NaN);

  at(row: number): number | null {
    const value = this.cells[row];
    return value === undefined || Number.isNaN(value) ? null : value;
  }

  ranks = (): Float64Array => this.cells;

  protected async take({ facts, first }: Section, piece: string, start: number, length: number): Promise<void> {
    if (facts.empty) return;
    const values = (facts.all as (number | null)[] | undefined) ?? (await load<(number | null)[]>(piece));
    for (let at = 0; at < length; at++) this.cells[first + start + at] = values[at] ?? NaN;
  }
}

export class Codes extends Column {
  readonly values: string[] = [];
  hasValues = false;
  private readonly known = new Map<string, number>();
  private readonly cells = new Int32Array(this.count).fill(-1);

  at(row: number): string | null {
    return this.values[this.cells[row] ?? -1] ?? null;
  }

  /** Whether a row's value is this one. */
  is(value: string): (row: number) => boolean {
    const code = this.known.get(value) ?? -2;
    return (row) => this.cells[row] === code;
  }

  ranks(): Float64Array {
    const order = this.values.map((_, code) => code).sort((a, b) => natural(this.values[a] ?? "", this.values[b] ?? ""));
    const ranks = new Float64Array(order.length);
    order.forEach((code, rank) => (ranks[code] = rank));
    return Float64Array.from(this.cells, (code) => (code < 0 ? NaN : (ranks[code] ?? NaN)));
  }

  /** Loads what the codes stand for; the rows need not be. */
  loadValues = async (): Promise<void> => {
    await Promise.all(this.sections.map((section) => this.codesOf(section)));
    this.hasValues = true;
  };

  /** Tells of each code of a section the code of the whole column. */
  private codesOf(section: Section): Promise<number[]> {
    section.codes ??= (async () => {
      const { facts, task, number } = section;
      const values = facts.empty ? [] : (facts.values ?? (await load<string[]>(`values-${task}-${number}`)));
      return values.map((value) => {
        let code = this.known.get(value);
        if (code === undefined) {
          code = this.values.push(value) - 1;
          this.known.set(value, code);
        }
        return code;
      });
    })();
    return section.codes;
  }

  protected async take(section: Section, piece: string, start: number, length: number): Promise<void> {
    const { facts, first } = section;
    if (facts.empty) return;
    const codes = await this.codesOf(section);
    const values = facts.same ? [] : ((facts.all as number[] | undefined) ?? (await load<number[]>(piece)));
    for (let at = 0; at < length; at++) this.cells[first + start + at] = codes[facts.same ? 0 : (values[at] ?? -1)] ?? -1;
  }
}

export class Texts extends Column {
  private readonly cells: string[] = [];

  at(row: number): string {
    return this.cells[row] ?? "";
  }

  ranks(): Float64Array {
    const distinct = new Map<string, number>();
    for (let row = 0; row < this.count; row++) distinct.set(this.at(row), 0);
    [...distinct.keys()].sort(natural).forEach((text, rank) => distinct.set(text, rank));
    return Float64Array.from({ length: this.count }, (_, row) => distinct.get(this.at(row)) ?? NaN);
  }

  protected async take({ facts, first }: Section, piece: string, start: number, length: number): Promise<void> {
    if (facts.empty) return;
    const { from } = facts;
    const values = from !== undefined ? [] : ((facts.all as string[] | undefined) ?? (await load<RowTexts>(piece))[this.key] ?? []);
    for (let at = 0; at < length; at++) this.cells[first + start + at] = from !== undefined ? String(from + at) : (values[at] ?? "");
  }
}
