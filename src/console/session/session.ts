import { Connection } from '../../client/connection.js'
import { setClock } from '../words/time-left.js'
import { type Client, pageClient } from '../service/page-client.js'
import type { Choices } from '../options/choices.js'

/** The page lies at `<base>/console`, so the service is one step up. */
export const baseUrl = new URL('.', location.href.replace(/[?#].*$/, '')).href.replace(/\/$/, '')

export const choicesName = `stemwork.choices ${baseUrl}`

/** Storage key of the time when the service last let the person in; set if this device keeps songs offline. */
export const offlineMark = `stemwork.offline ${baseUrl}`

/** Whether this device keeps songs offline. */
export const keepsSongs = () => offlineMark in localStorage

/** Session of the page. The key itself is in a cookie that no script can read. */
export interface Session {
  application: string
  /** Null: the service identifies the person in another way, or lets everybody in. */
  session: { isRemembered: boolean } | null
}

export const connection = new Connection({ baseUrl })
/** Fewer retries, for devices that can play songs without the service. */
const hastyConnection = new Connection({ baseUrl, retries: 1 })

export function sessionClient(): Client {
  return pageClient({ baseUrl })
}

/**
 * Undefined if nobody is signed in.
 *
 * @throws ClientError with the status 401 if the session has ended
 */
export async function currentSession(): Promise<Session | undefined> {
  const way = keepsSongs() ? hastyConnection : connection
  const { value, headers } = await way.json<Session | { application: null; session: null }>('/session')
  setClock(headers.get('date'))
  return value.application === null ? undefined : value
}

/** What was chosen in this tab, in case it is reloaded. */
export function keptChoices(): Choices | undefined {
  const kept = sessionStorage.getItem(choicesName)
  return kept ? (JSON.parse(kept) as Choices) : undefined
}

export function keepChoices(choices: Choices): void {
  sessionStorage.setItem(choicesName, JSON.stringify(choices))
}

/** The code of a link, `#code=...`. Removes it from the address, so that no history keeps it. */
export function codeOfLink(): string | undefined {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1]
  if (code !== undefined) history.replaceState(null, '', location.pathname)
  return code
}

/** Opened once it is used: a browser that blocks cookies refuses it. */
let channel: BroadcastChannel | undefined

/** Calls back when another tab of this page has signed in or out: all tabs share the session. */
export function onOtherTab(changed: () => void): void {
  channel = new BroadcastChannel(`stemwork ${baseUrl}`)
  channel.onmessage = changed
}

export function tellTabs(): void {
  channel?.postMessage('changed')
}
