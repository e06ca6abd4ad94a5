// The one decision on whether a key belongs to an input method, as for Japanese or Chinese. The Enter that takes a
// candidate must send nothing. Every handler of keys asks it; see TestScripts_AskOneFunctionAboutInputMethods.
"use strict";

const isComposing = (() => {
  // Safari ends the composition before it reports the key that ended it, in the same task, and the key then does not
  // say that it belongs to a composition.
  let ended = false;
  document.addEventListener("compositionend", (event) => {
    const field = event.target;
    ended = true;
    setTimeout(() => {
      ended = false;
      // Chrome and Safari report the last input before the end. Searches, which wait for the end, hear of it here.
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }, 0);
  }, true);

  /** Reports whether an event of the keyboard or of a field belongs to a composition. */
  return (event) => event.isComposing || event.keyCode === 229 || (event.type === "keydown" && ended);
})();
