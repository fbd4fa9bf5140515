import { type Client, pageClient } from './page-client.js'
import type { Choices } from './job-choices.js'

const keyName = 'stemwork.key'
const choicesName = 'stemwork.choices'

/** The page lies at `<base>/console`, so the service is one step up. */
export const baseUrl = new URL('.', location.href.replace(/[?#].*$/, '')).href.replace(/\/$/, '')

/** The key of this tab, or the one that this device remembers. */
export function currentKey(): string | undefined {
  return sessionStorage.getItem(keyName) ?? localStorage.getItem(keyName) ?? undefined
}

/** The key that this tab works with: the stored one may be gone before other tabs hear of it. */
let keyInUse: string | undefined

export function sessionClient(): Client {
  keyInUse = currentKey()
  return pageClient({ baseUrl, apiKey: keyInUse })
}

/** @param onDevice also for later visits, until the person signs out */
export function keepKey(key: string, onDevice: boolean): void {
  sessionStorage.setItem(keyName, key)
  if (onDevice) localStorage.setItem(keyName, key)
  else localStorage.removeItem(keyName)
}

export function isRemembered(): boolean {
  return localStorage.getItem(keyName) !== null
}

export function forgetKey(): void {
  keyInUse = undefined
  sessionStorage.removeItem(keyName)
  localStorage.removeItem(keyName)
  sessionStorage.removeItem(choicesName)
}

/** What was chosen in this tab, for the case that it is loaded again. */
export function keptChoices(): Choices | undefined {
  const kept = sessionStorage.getItem(choicesName)
  return kept === null ? undefined : (JSON.parse(kept) as Choices)
}

export function keepChoices(choices: Choices): void {
  sessionStorage.setItem(choicesName, JSON.stringify(choices))
}

/** The key of a printed link, `#key=...`. It is taken out of the address, so that no history keeps it. */
export function keyOfLink(): string | undefined {
  const key = /^#key=(.+)$/.exec(location.hash)?.[1]
  if (key === undefined) return undefined
  history.replaceState(null, '', location.pathname)
  return decodeURIComponent(key)
}

type TabMessage = { ask: true } | { key: string } | { leave: string | undefined }

const channel = new BroadcastChannel(`stemwork ${baseUrl}`)
const answerMs = 150

/**
 * Gives the key to other tabs of this page that have none. @param onLeave called when another tab with this key signs
 * out
 */
export function shareWithTabs(onLeave: () => void): void {
  channel.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => {
    if (keyInUse === undefined) return
    if ('ask' in data) channel.postMessage({ key: keyInUse } satisfies TabMessage)
    if ('leave' in data && data.leave === keyInUse) onLeave()
  })
}

/** Signs out in all tabs: one that stayed signed in would give the key back. */
export function leaveTabs(): void {
  channel.postMessage({ leave: currentKey() } satisfies TabMessage)
}

/** The key that another tab of this page uses; undefined if there is none. */
export function keyOfTabs(): Promise<string | undefined> {
  return new Promise((resolve) => {
    const end = (key?: string) => {
      clearTimeout(timer)
      channel.removeEventListener('message', onAnswer)
      resolve(key)
    }
    const onAnswer = ({ data }: MessageEvent<TabMessage>) => 'key' in data && end(data.key)
    const timer = setTimeout(end, answerMs)
    channel.addEventListener('message', onAnswer)
    channel.postMessage({ ask: true } satisfies TabMessage)
  })
}
