import { errorText, readableError } from '../job/error-text.js'

/**
 * A structured logger. pino, Fastify's logger and `console` work as they are. An error is passed in the field `err`,
 * which pino writes in full.
 */
export interface Logger {
  debug(fields: Record<string, unknown>, message: string): void
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

const levels = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof levels)[number]

const ignore = () => {}

/** Logs nothing at all: not even why a job failed. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }

/**
 * Writes human-readable lines: time, level, message, fields as JSON, and below them an error with its stack and causes.
 *
 * @param level lowest level that is written
 * @param shown formats the name of a level, for example in colour
 */
export function textLogger(
  stream: { write(text: string): unknown },
  level: Level,
  shown: (level: Level) => string = (name) => name,
): Logger {
  return loggerFrom(level, (name, { err, ...fields }, message) => {
    const details = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ''
    const cause = err === undefined ? '' : `\n  ${errorText(err).replaceAll('\n', '\n  ')}`
    stream.write(`${new Date().toISOString()} ${shown(name)} ${message}${details}${cause}\n`)
  })
}

/** Writes one JSON object a line: `time`, `level`, `message`, fields, and an error as text with stack and causes. */
export function jsonLogger(stream: { write(text: string): unknown }, level: Level): Logger {
  return loggerFrom(level, (name, { err, ...fields }, message) => {
    const cause = err === undefined ? {} : { err: errorText(err) }
    const line = { time: new Date().toISOString(), level: name, message, ...fields, ...cause }
    stream.write(`${JSON.stringify(line)}\n`)
  })
}

function loggerFrom(
  level: Level,
  write: (level: Level, fields: Record<string, unknown>, message: string) => void,
): Logger {
  const logger = { ...silentLogger }
  for (const name of levels.slice(levels.indexOf(level)))
    logger[name] = (fields, message) => write(name, fields, message)
  return logger
}

export function isLogger(value: unknown): value is Logger {
  // Loggers of Fastify and pino, including pino's child loggers, are objects with a prototype.
  return (
    typeof value === 'object' &&
    value !== null &&
    levels.every((level) => typeof (value as Logger)[level] === 'function')
  )
}

/**
 * Wraps a logger so that it never throws: the host's code must not keep a job from ending, nor crash the process. The
 * first failure is reported on stderr.
 */
export function steadyLogger(logger: Logger): Logger {
  let hasFailed = false
  const failed = (error: unknown) => {
    if (hasFailed) return
    hasFailed = true
    defaultLogger.error({ err: readableError(error) }, 'The logger failed, and log lines are lost. Fix the logger.')
  }
  const steady = { ...silentLogger }
  for (const level of levels)
    steady[level] = (fields, message) => {
      try {
        // The logger may be `async`, though nothing awaits it.
        const written: unknown = logger[level](fields, message)
        if (written instanceof Promise) written.catch(failed)
      } catch (error) {
        failed(error)
      }
    }
  return steady
}

/** The default logger: writes warnings and errors to stderr, and drops all other lines. */
export const defaultLogger: Logger = textLogger({ write: (text) => process.stderr.write(`stemwork ${text}`) }, 'warn')
