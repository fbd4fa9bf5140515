/** The used part of a connection of the package `ws`, which only services with WebSockets need. */
export interface WebSocketConnection {
  on(event: 'message', listener: (data: Uint8Array, isBinary: boolean) => void): this
  on(event: 'close' | 'pong', listener: () => void): this
  on(event: 'error', listener: (error: Error) => void): this
  send(message: Uint8Array | string, sent: (error?: Error) => void): void
  ping(): void
  pause(): void
  resume(): void
  close(code: number, reason: string): void
  terminate(): void
}
