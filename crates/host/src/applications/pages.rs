//! Models of web pages.

use bentpipe_types::RandomStream;

/// Model of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageModel {
    /// Equal pages.
    Fixed {
        /// Bytes of the document.
        document: u64,
        /// Number of objects besides it.
        objects: u32,
        /// Bytes of each object.
        size: u64,
    },
    /// Desktop pages of 2024 and 2025 after the HTTP Archive's Web Almanac (chapter Page Weight):
    /// quantiles of total weight and number of requests, interpolated on a logarithmic scale. Heavy
    /// pages have many requests.
    WebAlmanac,
    /// 3GPP TR 25.892 (annex A.2.1.3): pages of about 2003, small with few objects.
    ThreeGpp,
}

/// An object of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Object {
    /// Bytes of its response.
    pub(super) size: u64,
    /// The object that refers to it; `None` for the document.
    pub(super) parent: Option<usize>,
}

/// Web Almanac 2024/2025, Page Weight, desktop: percentile, kilobytes, requests.
const WEB_ALMANAC: [(f64, f64, f64); 5] = [
    (0.10, 607e3, 24.0),
    (0.25, 1275e3, 42.0),
    (0.50, 2412e3, 71.0),
    (0.75, 4570e3, 115.0),
    (0.90, 9179e3, 176.0),
];

/// Interpolates between published quantiles on a logarithmic scale; outside them, extrapolates from
/// the nearest two.
fn interpolate(share: f64, value: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
    let next = WEB_ALMANAC.iter().position(|(p, ..)| share < *p);
    let next = next
        .unwrap_or(WEB_ALMANAC.len())
        .clamp(1, WEB_ALMANAC.len() - 1);
    let (low, high) = (&WEB_ALMANAC[next - 1], &WEB_ALMANAC[next]);
    let along = (share - low.0) / (high.0 - low.0);
    let (from, to) = (libm::log(value(low)), libm::log(value(high)));
    libm::exp(from + along * (to - from))
}

/// TR 25.892: a truncated lognormal distribution, redrawn outside its limits. Sigma is as
/// published. Mu is chosen such that the truncated mean is the published mean, which with the
/// published mu is the mean before truncation.
fn lognormal(random: &mut RandomStream, mu: f64, sigma: f64, low: f64, high: f64) -> u64 {
    loop {
        // Box and Muller 1958.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.uniform()));
        let normal = radius * libm::cos(2.0 * std::f64::consts::PI * random.uniform());
        let size = libm::exp(mu + sigma * normal);
        if (low..=high).contains(&size) {
            return libm::round(size) as u64;
        }
    }
}

/// TR 25.892: the number of embedded objects, a Pareto distribution from 2 (shape 1.1), redrawn
/// above 55, minus 2: 3.95 on average.
fn three_gpp_objects(random: &mut RandomStream) -> usize {
    loop {
        let number = 2.0 / libm::pow(1.0 - random.uniform(), 1.0 / 1.1);
        if number < 55.0 {
            return number as usize - 2;
        }
    }
}

impl PageModel {
    /// Draws the objects of a page, document first. The others are spread evenly over `levels`
    /// levels: the first level is referred to by the document, the second by the first (a style
    /// sheet that names a font), and so on.
    pub(super) fn draw(self, levels: u32, random: &mut RandomStream) -> Vec<Object> {
        let sizes = match self {
            Self::Fixed {
                document,
                objects,
                size,
            } => {
                let mut sizes = vec![document];
                sizes.resize(1 + objects as usize, size);
                sizes
            }
            Self::WebAlmanac => {
                // The range in which extrapolation is reasonable.
                let share = random.uniform().clamp(0.02, 0.98);
                let weight = interpolate(share, |entry| entry.1);
                let requests = libm::round(interpolate(share, |entry| entry.2)).max(1.0) as usize;
                // Shares of the total with the spread of exponential variables.
                let parts: Vec<f64> = (0..requests).map(|_| random.exponential(1.0)).collect();
                let whole: f64 = parts.iter().sum();
                let size = |part: f64| (libm::round(weight * part / whole)).max(1.0) as u64;
                parts.into_iter().map(size).collect()
            }
            Self::ThreeGpp => {
                let mut sizes = vec![lognormal(random, 8.3381, 1.37, 100.0, 2e6)];
                for _ in 0..three_gpp_objects(random) {
                    sizes.push(lognormal(random, 6.0986, 2.36, 50.0, 2e6));
                }
                sizes
            }
        };
        let besides = sizes.len() - 1;
        let levels = (levels.max(1) as usize).min(besides.max(1));
        let each = besides.div_ceil(levels).max(1);
        let parent = |index: usize| match index {
            0 => None,
            index if index <= each => Some(0),
            // The object at the same position one level above.
            index => Some(index - each),
        };
        let object = |(index, size): (usize, u64)| Object {
            size,
            parent: parent(index),
        };
        sizes.into_iter().enumerate().map(object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> RandomStream {
        RandomStream::new(3, "test", "pages")
    }

    #[test]
    fn page_sizes_match_the_quantiles_of_the_web_almanac() {
        let mut random = random();
        let mut pages: Vec<(u64, usize)> = (0..40_000)
            .map(|_| PageModel::WebAlmanac.draw(2, &mut random))
            .map(|page| (page.iter().map(|object| object.size).sum(), page.len()))
            .collect();
        pages.sort_unstable();
        for (share, weight, requests) in WEB_ALMANAC {
            let (bytes, objects) = pages[(share * pages.len() as f64) as usize];
            let ratio = bytes as f64 / weight;
            // The quantile's standard error: sqrt(p (1 - p) / n) of a slope of about 3 per unit of
            // p.
            assert!((ratio - 1.0).abs() < 0.03, "{share}: {bytes} B");
            assert!((objects as f64 / requests - 1.0).abs() < 0.03, "{objects}");
        }
    }

    #[test]
    fn page_sizes_match_the_means_of_3gpp() {
        let mut random = random();
        let draws = 400_000;
        let (mut document, mut objects, mut bytes) = (0, 0, 0);
        for _ in 0..draws {
            let page = PageModel::ThreeGpp.draw(1, &mut random);
            document += page[0].size;
            objects += page.len() - 1;
            bytes += page[1..].iter().map(|object| object.size).sum::<u64>();
        }
        let mean = f64::from(draws);
        assert!((document as f64 / mean / 10_710.0 - 1.0).abs() < 0.02);
        assert!(
            (objects as f64 / mean - 3.95).abs() < 0.05,
            "{}",
            objects as f64 / mean
        );
        let size = bytes as f64 / objects as f64;
        assert!((size / 7_758.0 - 1.0).abs() < 0.03, "{size}");
    }

    #[test]
    fn object_levels_form_chains_of_parents() {
        let model = PageModel::Fixed {
            document: 10,
            objects: 6,
            size: 5,
        };
        let page = model.draw(3, &mut random());
        let parents: Vec<_> = page.iter().map(|object| object.parent).collect();
        let expected = [None, Some(0), Some(0), Some(1), Some(2), Some(3), Some(4)];
        assert_eq!(parents, expected);
        let lone = PageModel::Fixed {
            document: 10,
            objects: 0,
            size: 5,
        };
        assert_eq!(lone.draw(3, &mut random()).len(), 1);
    }
}
