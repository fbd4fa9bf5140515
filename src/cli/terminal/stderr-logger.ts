import { StemworkError } from '../../core/engine/errors.js'
import { errorLine } from '../../core/engine/job/error-text.js'
import { jsonLogger, type Logger, textLogger } from '../../core/engine/ports/logger.js'
import { type CommandInput, flag, type Terminal, valued } from '../command.js'
import { serverRemedy } from './server-failure.js'
import { styled } from './style.js'

const styles = { debug: 'dim', info: 'dim', warn: 'yellow', error: 'red' } as const

/** Options of long-running commands. */
export const logOptions = {
  'log-format': valued('text|json', 'How log lines are written: for people, or as JSON objects. Default: text.'),
  verbose: flag('Log more.'),
}

/** @throws UsageError for an unknown format */
export function serviceLogger(input: CommandInput, stderr: Terminal['stderr']): Logger {
  const format = input.oneOf(['text', 'json'], 'log-format')
  return stderrLogger(stderr, { debug: input.isOn('verbose'), json: format === 'json' })
}

/**
 * Logs lines for people, or JSON; debug lines only on request. If the operator can repair a server, the line says how
 * instead of showing a stack; the server of an input is its client's affair.
 */
export function stderrLogger(stderr: Terminal['stderr'], { debug = false, json = false } = {}): Logger {
  const lowest = debug ? 'debug' : 'info'
  const logger = json
    ? jsonLogger(stderr, lowest)
    : textLogger(stderr, lowest, (level) => styled(stderr, styles[level], level))
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
