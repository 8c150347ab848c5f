// Figures turn while the pointer is over them.
const still = matchMedia("(prefers-reduced-motion: reduce)");
for (const link of document.querySelectorAll(".wall a")) {
  const image = link.querySelector("img");
  const first = image.src;
  let turning = 0; // which of the turns is shown next, and 0 for none
  const turn = async (number, round) => {
    const next = new Image();
    next.src = first + "&turn=" + (number % 8);
    await next.decode().catch(() => stop());
    if (turning !== round) return;
    image.src = next.src;
    setTimeout(turn, 160, number + 1, round);
  };
  const stop = () => {
    turning = 0;
    image.src = first;
  };
  link.addEventListener("pointerenter", (event) => {
    if (event.pointerType === "mouse" && !still.matches) turn(2, (turning = Date.now()));
  });
  link.addEventListener("pointerleave", () => turning && stop());
}
