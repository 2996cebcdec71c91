// The clipboard, with a way round it for pages that may not use it.

/** Copies a text; false if the browser refuses. The clipboard needs a page of this machine, or TLS; elsewhere a selection does. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
