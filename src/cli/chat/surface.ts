/** Where a chat is shown and where its keys or lines come from: a terminal, or pipes. */

import type { ChatCore } from "./chat-core.ts";
import type { Printed } from "./printed.ts";

export interface Surface {
  /** Prints, and shows the chat as it is now. */
  show(printed: readonly Printed[], core: ChatCore): void;
  /** Puts a text into the line that is written. */
  fill(text: string): void;
  /** Clears the screen and shows the chat anew. */
  redraw(core: ChatCore): void;
  /** Puts the program into the background until it is called back. */
  suspend(): void;
  /** Begins to take keys or lines; `changed` is called after each. */
  start(core: ChatCore, changed: () => void): void;
  /** Gives the terminal back. */
  close(core: ChatCore): void;
}
