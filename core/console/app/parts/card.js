import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { href } from "../router.js";
import { html, isLively, Picture } from "./basics.js";

/** The turn that shows the front of a figure, and how many there are. */
const front = 1;
const turns = 8;

/**
 * A texture in a list: all of the card leads to its page. A figure turns while the pointer is over it.
 * @param {{tid: number, type: string, name: string, corner?: any, children?: any}} props corner: what lies over the picture
 */
export function Card({ tid, type, name, corner, children }) {
  const turn = useSignal(front);
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const isOver = useRef(false);
  const isCape = type === "cape";
  const step = () => {
    clearTimeout(timer.current);
    if (isOver.current) timer.current = setTimeout(() => { turn.value = (turn.value + 1) % turns; }, 160);
  };
  const picture = isCape ? "/preview/" + tid : `/body/${tid}${turn.value === front ? "" : "?turn=" + turn.value}`;
  return html`<li class="card item" onPointerEnter=${(/** @type {PointerEvent} */ { pointerType }) => {
    isOver.current = pointerType === "mouse" && !isCape && isLively();
    step();
  }} onPointerLeave=${() => {
    isOver.current = false;
    turn.value = front;
  }}>
    <div class="picture"><${Picture} path=${picture} parameter="height" size=${isCape ? 128 : 160} width=${isCape ? 128 : 80} alt="" onLoad=${step} /></div>
    ${corner}
    <h2><a href=${href("/texture?tid=" + tid)}><bdi>${name}</bdi></a></h2>
    ${children}
  </li>`;
}
