// Letters of formulas in other shapes: browsers know `mathvariant` no more, Unicode has a character for each shape.

interface Shape {
  capital: number;
  small: number;
  digit?: number;
  /** Letters that had a place in Unicode before the others came. */
  others: Record<string, string>;
}

const SHAPES: Record<string, Shape> = {
  bold: { capital: 0x1d400, small: 0x1d41a, digit: 0x1d7ce, others: {} },
  "bold-italic": { capital: 0x1d468, small: 0x1d482, others: {} },
  "double-struck": {
    capital: 0x1d538,
    small: 0x1d552,
    digit: 0x1d7d8,
    others: { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ" },
  },
  fraktur: { capital: 0x1d504, small: 0x1d51e, others: { C: "ℭ", H: "ℌ", I: "ℑ", R: "ℜ", Z: "ℨ" } },
  monospace: { capital: 0x1d670, small: 0x1d68a, digit: 0x1d7f6, others: {} },
  "sans-serif": { capital: 0x1d5a0, small: 0x1d5ba, digit: 0x1d7e2, others: {} },
  script: {
    capital: 0x1d49c,
    small: 0x1d4b6,
    others: { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ", g: "ℊ", o: "ℴ" },
  },
};

/** The text in the letters of a variant of MathML; as it is where there are none. */
export function lettered(text: string, variant: string): string {
  const shape = Object.hasOwn(SHAPES, variant) ? SHAPES[variant] : undefined;
  if (!shape) return text;
  return text.replace(/[A-Za-z0-9]/g, (letter) => {
    const [first, start] = /[A-Z]/.test(letter) ? ["A", shape.capital] : /[a-z]/.test(letter) ? ["a", shape.small] : ["0", shape.digit];
    if (Object.hasOwn(shape.others, letter)) return shape.others[letter] as string;
    return start === undefined ? letter : String.fromCodePoint(start + letter.charCodeAt(0) - (first as string).charCodeAt(0));
  });
}
