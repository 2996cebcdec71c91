// Tabs as WAI-ARIA has them: links with addresses of their own, of which only the chosen one is in the order of Tab; arrows go through them.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

import { go } from "./route";

export interface Tab {
  key: string;
  name: string;
  address: string;
}

const panelOf = (key: string): string => `panel-${key}`;
const tabOf = (key: string): string => `tab-${key}`;

export function TabList({ tabs, now, label }: { tabs: Tab[]; now: string; label: string }) {
  const list = useRef<HTMLDivElement>(null);
  const pressed = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ key }) => key === now);
    const place = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const next = place === undefined ? undefined : tabs[(place + tabs.length) % tabs.length];
    if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    list.current?.querySelector<HTMLElement>(`#${tabOf(next.key)}`)?.focus();
    go(next.address);
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={pressed}>
      {tabs.map(({ key, name, address }) => (
        <a id={tabOf(key)} role="tab" href={address} aria-selected={key === now} aria-controls={key === now ? panelOf(key) : undefined} tabIndex={key === now ? 0 : -1}>
          {name}
        </a>
      ))}
    </div>
  );
}

export const TabPanel = ({ now, children }: { now: string; children: ComponentChildren }) => (
  <div id={panelOf(now)} role="tabpanel" aria-labelledby={tabOf(now)}>
    {children}
  </div>
);
