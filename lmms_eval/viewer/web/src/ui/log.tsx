// The log of a run, followed while it grows.
import { useEffect, useRef, useState } from "preact/hooks";

import { Text } from "../text";
import { api } from "./api";

const EVERY_MS = 1000;
const MOST_LINES = 2000;

export function Log({ job, grows }: { job: string; grows: boolean }) {
  const { text, error } = useLog(job, grows);
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current as HTMLPreElement;
    atEnd.current = scrollTop + clientHeight > scrollHeight - 30;
  };
  return (
    <>
      <pre class="text log" ref={box} onScroll={scrolled} tabIndex={0} aria-label="Log">
        {text ? <Text>{text}</Text> : <span class="quiet">{grows ? "Nothing yet." : "Empty."}</span>}
      </pre>
      {error && <p class="problem" role="alert"><Text>{error}</Text></p>}
    </>
  );
}

/** Reads on from where it has read to, until nothing more comes and the run has ended. */
function useLog(job: string, grows: boolean): { text: string; error?: string } {
  const [state, set] = useState<{ text: string; error?: string }>({ text: "" });
  const place = useRef(0);
  useEffect(() => {
    let current = true;
    let timer = 0;
    const look = async () => {
      let isMore = false;
      try {
        if (!document.hidden || !grows) {
          const piece = await api.log(job, place.current);
          if (!current) return;
          isMore = piece.next > place.current;
          place.current = piece.next;
          if (isMore || state.error) set(({ text }) => ({ text: last(text + piece.text) }));
        }
      } catch (error) {
        if (current) set(({ text }) => ({ text, error: (error as Error).message }));
      }
      if (current && (grows || isMore)) timer = window.setTimeout(look, isMore ? 50 : EVERY_MS);
    };
    void look();
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
  }, [job, grows]);
  return state;
}

/** The last lines, each as a terminal shows it: what a carriage return has written over is gone. */
function last(text: string): string {
  const lines = text.split("\n").map((line) => line.replace(/\r+$/, "").replace(/^[^]*\r/, ""));
  return lines.slice(-MOST_LINES).join("\n");
}
