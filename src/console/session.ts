import { createClient, type Client } from '../client/client.js'

const keyName = 'stemwork.key'

/** The page lies at `<base>/console`, so the service is one step up. */
export const baseUrl = new URL('.', location.href.replace(/[?#].*$/, '')).href

/** A client with the key of this browser tab, or without one. The key goes with the tab. */
export function sessionClient(): Client {
  return createClient({ baseUrl, apiKey: sessionStorage.getItem(keyName) ?? undefined })
}

export function hasKey(): boolean {
  return sessionStorage.getItem(keyName) !== null
}

export function keepKey(key: string): void {
  sessionStorage.setItem(keyName, key)
}

export function forgetKey(): void {
  sessionStorage.removeItem(keyName)
}
