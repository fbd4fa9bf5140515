/** Structured log hook in the shape of pino's and console's methods. The library logs nothing unless the host passes one. */
export interface Logger {
  debug(fields: Record<string, unknown>, message: string): void
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

const ignore = () => {}
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }
