/** How an agent ends a turn FAILED: no later try would go better. */

import { ERROR_CODES, type ErrorCode } from "../../base/errors.ts";
import { HarnessFailure } from "../../spi/index.ts";

/** What is thrown for it. The description is journaled; it names the field or the state and holds no payload. */
export function failure(code: ErrorCode, description: string): HarnessFailure {
  return new HarnessFailure(ERROR_CODES[code].grpc, description);
}
