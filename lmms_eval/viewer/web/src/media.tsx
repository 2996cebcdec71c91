// Pictures, frames and sounds. Only files of the report itself are ever named as a source.
import { useState } from "preact/hooks";

import { capital, number, plain, seconds, Text } from "./text";
import type { Medium } from "./types";

const INSIDE = /^(media\/[0-9a-f]{24}\.(webp|png|jpg|gif|wav)|data:(image\/(webp|png|jpeg|gif)|audio\/wav);base64,[A-Za-z0-9+/=]*)$/;

export const inside = (src: string | undefined): string | undefined => (src && INSIDE.test(src) ? src : undefined);

/** A small picture, with masks (addresses separated by spaces) over it. */
export function Picture({ src, masks = "" }: { src: string | undefined; masks?: string }) {
  const known = inside(src);
  if (!known) return null;
  const over = masks.split(" ").flatMap((one) => inside(one) ?? []);
  const image = <img class="thumb" src={known} alt="" loading="lazy" decoding="async" />;
  if (!over.length) return image;
  return (
    <span class="masked">
      {image}
      {over.map((one) => (
        <img class="thumb over" src={one} alt="" loading="lazy" decoding="async" />
      ))}
    </span>
  );
}

export function MediumView({ medium, children }: { medium: Medium; children?: preact.ComponentChildren }) {
  if (medium.frames) return <Frames medium={medium} />;
  const src = inside(medium.src);
  const name = shortName(medium.name);
  if (!src)
    return (
      <figure class="missing">
        <figcaption>
          {name ? (
            <>
              {capital(medium.kind)} <Text>{name}</Text>
            </>
          ) : (
            `${capital(medium.kind)} not recorded by this model`
          )}
          {medium.missing && (
            <>
              {name ? " – " : ": "}
              <Text>{medium.missing}</Text>
            </>
          )}
        </figcaption>
      </figure>
    );
  if (medium.kind === "audio")
    return (
      <figure>
        <audio controls preload="none" src={src} />
        <figcaption>
          <Text>{name}</Text> {medium.seconds !== undefined && seconds(medium.seconds)}
        </figcaption>
      </figure>
    );
  return <Still medium={medium} src={src} name={name} children={children} />;
}

/** Pixels of a width below which a picture is enlarged, since nothing could be recognised in it. */
const TINY = 200;

function Still({ medium, src, name, children }: { medium: Medium; src: string; name: string; children?: preact.ComponentChildren }) {
  const [large, show] = useState(false);
  const full = inside(medium.full);
  return (
    <figure class={large ? "large" : medium.width && medium.width < TINY ? "tiny" : ""}>
      <button class="plain picture" aria-label={large ? "Show small" : "Show large"} onClick={() => show(!large)}>
        <img src={large && full ? full : src} alt={plain(name)} loading="lazy" />
        {children}
      </button>
      <figcaption>
        <Text>{name}</Text> {medium.width && medium.height && `${medium.width} × ${medium.height}`}
      </figcaption>
    </figure>
  );
}

function Frames({ medium }: { medium: Medium }) {
  const frames = medium.frames ?? [];
  return (
    <figure class="video">
      <div class="strip" tabIndex={0} role="region" aria-label="Frames of the video">
        {frames.map((frame) => (
          <span>
            <img src={inside(frame.src)} alt="" loading="lazy" />
            <small>{frame.time === null ? "" : `${number(frame.time, 3)} s`}</small>
          </span>
        ))}
      </div>
      <figcaption>
        <Text>{shortName(medium.name)}</Text> {frames.length} of {medium.frames_seen ?? frames.length} frames seen by the model
      </figcaption>
    </figure>
  );
}

/** The last part of a path; of a digest its beginning. */
const shortName = (name: string): string => (name.split("/").pop() ?? name).replace(/^([0-9a-f]{12})[0-9a-f]{52}/, "$1…");
