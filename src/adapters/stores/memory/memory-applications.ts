import type { ApiKey, Application, ApplicationStore } from '../../../core/engine/ports/application-store.js'
import { copyOfPlain, plainCopy } from '../shared/plain-copy.js'

/** Applications and their keys in this process's memory. */
export function memoryApplications(): ApplicationStore {
  const applications = new Map<string, Application>()
  const keys = new Map<string, ApiKey>()

  return {
    async putApplication(application) {
      applications.set(application.id, plainCopy(application))
    },
    async getApplication(id) {
      return copyOfPlain(applications.get(id))
    },
    async listApplications() {
      return newestFirst(plainCopy([...applications.values()]))
    },
    async putKey(key) {
      keys.set(key.id, plainCopy(key))
    },
    async getKey(id) {
      const key = keys.get(id)
      return key && { ...key }
    },
    async listKeys(app) {
      return newestFirst(plainCopy([...keys.values()].filter((key) => key.app === app)))
    },
    async deleteKey({ id }) {
      keys.delete(id)
    },
  }
}

function newestFirst<Entry extends { createdAt: number; id: string }>(entries: Entry[]): Entry[] {
  return entries.sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
}
