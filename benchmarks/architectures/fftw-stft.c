/* Short-time Fourier transform and back with FFTW in single precision, as the yardstick of benchmarks/stft.mjs:
 * fftw-stft SIZE HOP FRAMES SEGMENTS ROUNDS prints the processor time of each round in milliseconds.
 * A round analyses and restores SEGMENTS stretches of FRAMES frames: window, transform, inverse, window, overlap-add, division. */
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static double cpu_ms(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

int main(int count, char **arguments) {
  if (count < 6) return 2;
  const int size = atoi(arguments[1]), hop = atoi(arguments[2]), frames = atoi(arguments[3]);
  const int segments = atoi(arguments[4]), rounds = atoi(arguments[5]), bins = size / 2 + 1;
  const int samples = (frames - 1) * hop + size;
  float *signal = fftwf_alloc_real(samples), *restored = fftwf_alloc_real(samples), *inverse_envelope = fftwf_alloc_real(samples);
  float *window = fftwf_alloc_real(size), *frame = fftwf_alloc_real(size);
  fftwf_complex *spectrum = fftwf_alloc_complex((size_t)frames * bins), *row = fftwf_alloc_complex(bins);
  fftwf_plan forward = fftwf_plan_dft_r2c_1d(size, frame, row, FFTW_MEASURE);
  fftwf_plan inverse = fftwf_plan_dft_c2r_1d(size, row, frame, FFTW_MEASURE);
  for (int n = 0; n < size; n++) window[n] = 0.5f - 0.5f * cosf(2 * (float)M_PI * n / size);
  for (int i = 0; i < samples; i++) signal[i] = rand() / (float)RAND_MAX - 0.5f;
  memset(inverse_envelope, 0, samples * sizeof(float));
  for (int t = 0; t < frames; t++)
    for (int n = 0; n < size; n++) inverse_envelope[t * hop + n] += window[n] * window[n];
  for (int i = 0; i < samples; i++) inverse_envelope[i] = 1 / fmaxf(inverse_envelope[i], 1e-8f) / size;

  for (int round = 0; round < rounds; round++) {
    const double started = cpu_ms();
    for (int segment = 0; segment < segments; segment++) {
      for (int t = 0; t < frames; t++) {
        for (int n = 0; n < size; n++) frame[n] = signal[t * hop + n] * window[n];
        fftwf_execute(forward);
        memcpy(spectrum + (size_t)t * bins, row, bins * sizeof *row);
      }
      memset(restored, 0, samples * sizeof(float));
      for (int t = 0; t < frames; t++) {
        memcpy(row, spectrum + (size_t)t * bins, bins * sizeof *row);
        fftwf_execute(inverse);
        for (int n = 0; n < size; n++) restored[t * hop + n] += frame[n] * window[n];
      }
      for (int i = 0; i < samples; i++) restored[i] *= inverse_envelope[i];
    }
    double worst = 0;
    for (int i = size; i < samples - size; i++) worst = fmax(worst, fabs(restored[i] - signal[i]));
    if (worst > 1e-5) return 3;
    printf("%.3f\n", cpu_ms() - started);
  }
  return 0;
}
