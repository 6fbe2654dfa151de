/** What somebody may do here. The console refuses the rest anyway: this only says it before. */

import type { Me } from "./types";

/** Why an operator's button is not to be pressed; empty if it may be. */
export const onlyLooks = (who: Me | null): string => (who?.role === "viewer" ? "Viewers may look, and not operate" : "");
