// A name that may be long: what does not fit is left out in its middle, and is there for who reads or copies it.
import { plain, Text } from "./text";

/** `ending`: characters of the end that always stand there. What it stands in is labelled with the whole name. */
export function Name({ children, ending = 20 }: { children: string; ending?: number }) {
  const characters = [...children]; // never half of one
  const end = Math.min(ending, Math.floor(characters.length / 2));
  return (
    <span class="name" title={plain(children)} style={{ "--ending": `${end}ch` }}>
      <span>
        <Text>{characters.slice(0, characters.length - end).join("")}</Text>
      </span>
      <span>
        <Text>{characters.slice(characters.length - end).join("")}</Text>
      </span>
    </span>
  );
}
