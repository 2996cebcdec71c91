// Texts in the pieces by which they are compared: words, whole numbers, single signs. A number is never taken apart.

/** Scripts without spaces between words, of which each character is a piece. */
const PIECES =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|\p{Nd}+(?:,\p{Nd}{3}(?![\p{Nd}]))*(?:,\p{Nd}+(?![,\p{Nd}]))?(?:[.:/]\p{Nd}+)*(?:[eE][+-]?\p{Nd}+)?%?|[\p{L}\p{M}\p{N}_]+|\s+|[^\s\p{L}\p{M}\p{N}_]/gu;
const NUMBER = /^\p{Nd}/u;
const SIGN = /^[+\-−]$/;
const BEFORE_SIGN = /^[\s([{,:;=<>|"']/;

export function piecesOf(text: string): string[] {
  const found = text.match(PIECES) ?? [];
  const pieces: string[] = [];
  for (const piece of found) {
    const sign = pieces[pieces.length - 1] ?? "";
    const before = pieces[pieces.length - 2];
    if (NUMBER.test(piece) && SIGN.test(sign) && (before === undefined || BEFORE_SIGN.test(before))) pieces[pieces.length - 1] = sign + piece;
    else pieces.push(piece);
  }
  return pieces;
}
