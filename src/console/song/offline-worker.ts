// The service worker of the page: without a network, it answers with the page as it was kept (offline-songs.ts).

interface FetchEvent extends Event {
  request: Request
  respondWith(answer: Promise<Response>): void
}

interface WorkerScope extends EventTarget {
  registration: { scope: string }
  clients: { claim(): Promise<void> }
  skipWaiting(): Promise<void>
}

const scope = globalThis as unknown as WorkerScope

scope.addEventListener('install', () => void scope.skipWaiting())
scope.addEventListener('activate', () => void scope.clients.claim())
scope.addEventListener('fetch', (event) => {
  const { request, respondWith } = event as FetchEvent
  const { origin, pathname } = new URL(request.url)
  const page = scope.registration.scope
  const isPart = origin + pathname === page || (origin + pathname).startsWith(`${page}/`)
  if (request.method === 'GET' && isPart) respondWith.call(event, answer(request))
})

async function answer(request: Request): Promise<Response> {
  try {
    return await fetch(request)
  } catch (error) {
    const kept = await caches.match(request, { ignoreSearch: true, ignoreVary: true })
    if (kept) return kept
    throw error
  }
}
