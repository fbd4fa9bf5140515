import { StemworkError } from '../core/engine/errors.js'
import { errorLine } from '../core/engine/job/error-text.js'
import { type Logger, textLogger } from '../core/engine/ports/logger.js'
import type { Terminal } from './command.js'
import { serverRemedy } from './server-failure.js'
import { styled } from './style.js'

const styles = { debug: 'dim', info: 'dim', warn: 'yellow', error: 'red' } as const

/**
 * Log lines for people. Debug lines only on request. If the operator can repair a server, the line says how, and no
 * stack hides it; the server of an input is its client's affair.
 */
export function stderrLogger(stderr: Terminal['stderr'], { debug = false } = {}): Logger {
  const logger = textLogger(stderr, debug ? 'debug' : 'info', (level) => styled(stderr, styles[level], level))
  if (debug) return logger
  const taught =
    (write: Logger['warn']): Logger['warn'] =>
    ({ err, ...fields }, message) => {
      const isOfClient = StemworkError.is(err) && err.code === 'BAD_INPUT'
      const remedy = isOfClient ? '' : serverRemedy(err)
      if (remedy === undefined) write(err === undefined ? fields : { ...fields, err }, message)
      else write({ ...fields, cause: errorLine(err) }, `${message} ${remedy}`.trimEnd())
    }
  return { ...logger, warn: taught(logger.warn), error: taught(logger.error) }
}
