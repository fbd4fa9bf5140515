import { baseUrl, choicesName, connection, type Session, tellTabs } from './session.js'

/** Earlier versions kept keys where scripts can read them. */
for (const storage of [sessionStorage, localStorage]) storage.removeItem('stemwork.key')

export const keyEnded = { text: 'Your key no longer works. Sign in with another one.' }
export const linkEnded = { text: 'This sign-in link no longer works. Ask for a new one, or enter a key.' }

/** A key that was typed in, or the code of a link. */
export type Credential = { key: string } | { code: string }

/** @param remember whether to stay signed in for later visits, until the person signs out */
export async function signIn(credential: Credential, remember: boolean): Promise<void> {
  await connection.json('/session', { method: 'POST', json: { ...credential, remember } })
  tellTabs()
}

/** Sets whether the device keeps the current session. */
export async function remember(isKept: boolean): Promise<void> {
  await connection.json('/session', { method: 'POST', json: { remember: isKept } })
}

export async function signOut(): Promise<void> {
  sessionStorage.removeItem(choicesName)
  for (const name of Object.keys(localStorage)) if (name.startsWith('stemwork.song ')) localStorage.removeItem(name)
  await connection.send('/session', { method: 'DELETE' })
  tellTabs()
}

/** The name of the application that a link signs in to. */
export async function applicationOfCode(code: string): Promise<string> {
  return (await connection.json<Session>('/session/offer', { method: 'POST', json: { code } })).value.application
}

/** A link that signs in once with the key. */
export async function linkOfKey(key: string): Promise<string> {
  const { value } = await connection.json<{ code: string }>('/session/code', { method: 'POST', json: { key } })
  return `${baseUrl}/console#code=${value.code}`
}
